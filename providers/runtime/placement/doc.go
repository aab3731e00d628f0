// Package placement decides where a tenant's environments run and how much they may use.
//
// It is reconciled by tenant, not by Placement: one pass reads the tenant's Ledger, Placements and Home uncached, decides
// all that is pending in the order in which the claims were made ([Decide], which does no I/O), writes what it granted to
// the Ledger with the resourceVersion it read, and only then to the Placements. Of two writers, as when a lease was lost in
// the middle, one gets a conflict and decides again, so a budget is never granted twice.
//
// What was granted is never taken back. Nothing is counted up or down: what is in use is the sum of what the Ledger holds
// for the Placements that exist.
package placement
