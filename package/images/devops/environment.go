package main

import (
	"io/fs"
	"syscall"
	"time"
)

// identity says whose runtime this is.
type identity struct {
	Tenant      string `json:"tenant" jsonschema:"name of the tenant"`
	Environment string `json:"environment" jsonschema:"name of the tenant's environment"`
	Namespace   string `json:"namespace" jsonschema:"Kubernetes namespace it runs in"`
	Version     string `json:"version" jsonschema:"version of the runtime"`
}

// environment is what the runtime can see of itself.
type environment struct {
	identity identity
	cgroup   fs.FS
	home     string
	now      func() time.Time
	started  time.Time
}

// description answers the tool environment.
type description struct {
	identity

	StartedAt     time.Time `json:"startedAt" jsonschema:"when the runtime started"`
	UptimeSeconds int64     `json:"uptimeSeconds" jsonschema:"seconds since then"`
	Limits        limits    `json:"limits" jsonschema:"what the runtime's container may use at most"`
}

// usage answers the tool usage.
type usage struct {
	CPUSeconds  *float64 `json:"cpuSeconds,omitempty" jsonschema:"CPU time used since the container started, in seconds"`
	MemoryBytes *int64   `json:"memoryBytes,omitempty" jsonschema:"memory in use, page cache included"`
	Limits      limits   `json:"limits" jsonschema:"what the runtime's container may use at most"`
	Home        *volume  `json:"home,omitempty" jsonschema:"the volume that outlives restarts"`
}

type volume struct {
	Path      string `json:"path" jsonschema:"where it is mounted"`
	SizeBytes uint64 `json:"sizeBytes" jsonschema:"its size"`
	FreeBytes uint64 `json:"freeBytes" jsonschema:"what is free of it"`
}

func (e *environment) describe() description {
	return description{
		identity:      e.identity,
		StartedAt:     e.started.UTC().Truncate(time.Second),
		UptimeSeconds: int64(e.now().Sub(e.started) / time.Second),
		Limits:        readLimits(e.cgroup),
	}
}

func (e *environment) usage() usage {
	u := usage{Limits: readLimits(e.cgroup), Home: readVolume(e.home)}
	u.CPUSeconds, u.MemoryBytes = readUsage(e.cgroup)
	return u
}

// readVolume that path is on; none if it is not there.
func readVolume(path string) *volume {
	var s syscall.Statfs_t
	if path == "" || syscall.Statfs(path, &s) != nil {
		return nil
	}
	size := uint64(s.Bsize) //nolint:gosec // G115: a block's size is positive.
	return &volume{Path: path, SizeBytes: s.Blocks * size, FreeBytes: s.Bavail * size}
}
