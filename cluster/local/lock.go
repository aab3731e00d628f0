package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock takes an exclusive lock on a file, which is made if need be. It is held
// until unlock or until this process ends. Waiting, if not nil, is called once
// if somebody else holds it.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	for first := true; ; first = false {
		f, err := tryLock(path)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %s: another process holds it: %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// errLocked is a lock that somebody else holds.
var errLocked = errors.New("another process holds it")

// tryLock does not wait. The lock file stays: removing it would let two
// processes lock two files.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // What the caller names.
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}
