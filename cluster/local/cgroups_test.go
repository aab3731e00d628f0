package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveCgroupTakesThoseBelowIt(t *testing.T) {
	top := filepath.Join(t.TempDir(), "steading-x")
	if err := os.MkdirAll(filepath.Join(top, "kubepods", "burstable", "pod1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // There is nothing to do the second time.
		if err := removeCgroup(top); err != nil {
			t.Fatal(err)
		}
		if exists(top) {
			t.Fatal("it is there still")
		}
	}
}

// What stands for a process that has not ended yet: a cgroup that the kernel does not let go of.
func TestRemoveCgroupSaysWhatIsInUse(t *testing.T) {
	top := filepath.Join(t.TempDir(), "steading-x")
	if err := os.MkdirAll(top, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "in-use"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroup(top); err == nil {
		t.Error("a cgroup in use is said to be removed")
	}
}

func TestCgroupsOfTwoPlanesDiffer(t *testing.T) {
	if a, b := cgroupOf("/a"), cgroupOf("/b"); a == b || a != cgroupOf("/a") {
		t.Errorf("got %s and %s", a, b)
	}
}
