// Package target reaches the clusters that environments run on: the platform's own, called "platform", and those of
// registered contexts.
//
// Each [Target] has its own connection, discovery and cache, a timeout on every request and a breaker, so that a dead one
// costs nobody else anything. What is watched there wakes controllers by [Targets.Subscribe].
package target
