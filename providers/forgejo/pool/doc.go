// Package pool reconciles Runners: it makes a runner for every job in a server's queue that the pool serves.
//
// What is to be done is decided without I/O ([Decide]), from one look at the server and the runners on record. How many
// runners are missing is decided once a look: until the next one, a slot that becomes free is used for what is left of that,
// so that a runner which took its job meanwhile does not make the same job ask for another. Nothing is counted up or down but
// the failures that space out tries, and those are kept with the records that they were counted from.
package pool
