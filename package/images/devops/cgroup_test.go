package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func files(content map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, data := range content {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

func TestControlGroup(t *testing.T) {
	type want struct {
		limits limits
		cpu    *float64
		memory *int64
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   want
	}{
		"V2": {
			reason: "what a container of today sees",
			files: map[string]string{
				"cpu.max": "250000 100000\n", "memory.max": "17179869184\n", "memory.current": "4096\n",
				"cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
			},
			want: want{limits: limits{CPU: ptr.To(2.5), MemoryBytes: ptr.To[int64](16 << 30)}, cpu: ptr.To(1.5), memory: ptr.To[int64](4096)},
		},
		"V2Unlimited": {
			reason: "max is no number",
			files:  map[string]string{"cpu.max": "max 100000\n", "memory.max": "max\n", "memory.current": "0\n", "cpu.stat": "usage_usec 0\n"},
			want:   want{cpu: ptr.To(0.0), memory: ptr.To[int64](0)},
		},
		"V1": {
			reason: "what a container on an older node sees",
			files: map[string]string{
				"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n", "cpuacct/cpuacct.usage": "2000000000\n",
				"memory/memory.limit_in_bytes": "1073741824\n", "memory/memory.usage_in_bytes": "4096\n",
			},
			want: want{limits: limits{CPU: ptr.To(4.0), MemoryBytes: ptr.To[int64](1 << 30)}, cpu: ptr.To(2.0), memory: ptr.To[int64](4096)},
		},
		"V1Unlimited": {
			reason: "version 1 writes the largest number there is, rounded down to a page",
			files: map[string]string{
				"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
			},
		},
		"None":    {reason: "no control group is mounted"},
		"Garbage": {reason: "what cannot be read is not claimed", files: map[string]string{"cpu.max": "a b", "memory.max": "-5", "cpu.stat": "usage_usec x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{limits: readLimits(files(tc.files))}
			got.cpu, got.memory = readUsage(files(tc.files))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
