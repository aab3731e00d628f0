package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// How long the kernel may take to be done with processes that were killed.
	cgroupsTimeout = 10 * time.Second
)

// cgroupOf the pods of the plane in a folder, below the root of every hierarchy.
func cgroupOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "steading-" + hex.EncodeToString(sum[:])[:12]
}

// hierarchies of cgroups: one of version 2, or one for each controller of version 1 with that of version 2 beside them.
func hierarchies() ([]string, error) {
	if exists(filepath.Join(cgroupRoot, "cgroup.controllers")) {
		return []string{cgroupRoot}, nil
	}
	found, err := filepath.Glob(cgroupRoot + "/*/cgroup.procs")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("cannot find cgroups below %s: %w", cgroupRoot, err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// makeCgroups for the pods of the plane in a folder, which the kubelet expects.
func makeCgroups(dir string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := os.MkdirAll(filepath.Join(h, cgroupOf(dir)), 0o755); err != nil { //nolint:gosec // As all cgroups are.
			return fmt.Errorf("cannot make the node's cgroup: %w", err)
		}
	}
	return nil
}

// RemoveCgroups that the plane in a folder has left, if it had a node whose processes ended. The plane does so itself when it
// is stopped, and cannot when it is killed.
func RemoveCgroups(dir string) error {
	all, err := hierarchies()
	if err != nil {
		return nil //nolint:nilerr // Where there are none, none were left.
	}
	deadline := time.Now().Add(cgroupsTimeout)
	for _, h := range all {
		for {
			err := removeCgroup(filepath.Join(h, cgroupOf(dir)))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("cannot remove the node's cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeCgroup with those below it. Their files go with them, and cannot be removed.
func removeCgroup(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
