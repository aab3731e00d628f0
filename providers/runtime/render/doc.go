// Package render renders charts in processes of their own, so that no chart can exhaust the provider. Templates are programs
// that tenants bring along: one that repeats a letter a billion times, or that counts to a billion, ends with the process that
// renders it, which may have so much memory and so much time and no more.
//
// The process is the provider's own binary. It has no environment, no credentials and no files but its pipes: it gets an
// archive and values, and gives back objects. What a chart looks up in the cluster it asks the provider for, which looks
// with the power of the chart's deployer. Everything that YAML could blow up is expanded there, and what comes back is JSON
// of bounded size and depth.
package render
