// Package instance makes RunnerInstances true: each is one runner's registration with Forgejo, the credential it was told with
// it, and the Job or VirtualMachine that runs it.
//
// A runner comes about in four calls that cannot be one: it is registered, what it registered as is recorded, its credential
// is written, its child is made. Each can be the last one before a crash. The record is there before all of them; a
// registration that nobody recorded is found again by the mark in its description; and one whose credential nobody wrote is
// given up for another, since it was told only once.
//
// What became of a runner is decided by the verdict table in [sight.judge], once, and never by a list: whatever suggests a
// verdict, the server is asked for that one registration again, and only its own word that there is none counts as gone. An
// error is no answer. After a verdict the registration and the credential go and the child is stopped, in that order; the
// record and the child are history, and the record reports that all is well with it for ever.
package instance
