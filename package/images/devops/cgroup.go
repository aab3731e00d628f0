package main

import (
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// limits of the control group that the process is in. What is absent is not limited, or cannot be read.
type limits struct {
	CPU         *float64 `json:"cpu,omitempty" jsonschema:"CPU in cores; absent: not limited"`
	MemoryBytes *int64   `json:"memoryBytes,omitempty" jsonschema:"memory in bytes; absent: not limited"`
}

// readLimits from a mounted control group, of version 2 or else of version 1.
func readLimits(group fs.FS) limits {
	var l limits
	if quota, period, ok := strings.Cut(read(group, "cpu.max"), " "); ok {
		l.CPU = cores(quota, period)
	} else {
		l.CPU = cores(read(group, "cpu/cpu.cfs_quota_us"), read(group, "cpu/cpu.cfs_period_us"))
	}
	l.MemoryBytes = bytesOf(read(group, "memory.max"))
	if l.MemoryBytes == nil {
		l.MemoryBytes = bytesOf(read(group, "memory/memory.limit_in_bytes"))
	}
	return l
}

// readUsage from a mounted control group, of version 2 or else of version 1.
func readUsage(group fs.FS) (cpuSeconds *float64, memoryBytes *int64) {
	for line := range strings.Lines(read(group, "cpu.stat")) {
		if v, ok := strings.CutPrefix(line, "usage_usec "); ok {
			cpuSeconds = seconds(strings.TrimSpace(v), 1e6)
		}
	}
	if cpuSeconds == nil {
		cpuSeconds = seconds(read(group, "cpuacct/cpuacct.usage"), 1e9)
	}
	memoryBytes = bytesOf(read(group, "memory.current"))
	if memoryBytes == nil {
		memoryBytes = bytesOf(read(group, "memory/memory.usage_in_bytes"))
	}
	return cpuSeconds, memoryBytes
}

func read(group fs.FS, name string) string {
	b, err := fs.ReadFile(group, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// cores of a quota in a period. Version 1 says -1 and version 2 says max where there is no limit.
func cores(quota, period string) *float64 {
	q, err := strconv.ParseFloat(quota, 64)
	if err != nil || q <= 0 {
		return nil
	}
	p, err := strconv.ParseFloat(period, 64)
	if err != nil || p <= 0 {
		return nil
	}
	c := q / p
	return &c
}

// unlimited is below what version 1 says where there is no limit: the largest number, rounded down to a page.
const unlimited = math.MaxInt64 - 1<<20

func bytesOf(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > unlimited {
		return nil
	}
	return &n
}

func seconds(s string, unit float64) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	n /= unit
	return &n
}
