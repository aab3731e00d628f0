package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asSupervisor makes the test binary a supervisor that waits to be killed.
const asSupervisor = "STEADING_TEST_SUPERVISOR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asSupervisor); dir != "" {
		superviseForEver(dir)
	}
	os.Exit(m.Run())
}

// superviseForEver starts children, one of which ignores every signal it may
// ignore, prints their process ids and sleeps.
func superviseForEver(dir string) {
	s, err := NewSupervisor(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, c := range []Component{
		{Name: "meek", Path: "/bin/sleep", Args: []string{"600"}},
		{Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM INT HUP; while :; do sleep 600 & wait; done"}},
	} {
		if err := s.Start(context.Background(), c); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.Pid(c.Name))
	}
	fmt.Println("end")
	select {}
}

func TestNothingIsLeftAfterSIGKILLOfTheSupervisor(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asSupervisor+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "end"; {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("supervisor: %s", lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("got %d children, want 2", len(pids))
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("child %d does not run", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		eventually(t, 5*time.Second, fmt.Sprintf("child %d is gone", pid), func() bool { return !alive(pid) })
	}
}

func TestSupervisorRestartsWhatCrashes(t *testing.T) {
	s := newTestSupervisor(t)
	start(t, s, Component{Name: "a", Path: "/bin/sleep", Args: []string{"600"}})
	before := s.Pid("a")
	if err := s.Kill("a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "another process runs", func() bool { p := s.Pid("a"); return p != 0 && p != before })
	if alive(before) {
		t.Errorf("process %d survived Kill", before)
	}
}

func TestStoppedComponentStaysStoppedUntilResumed(t *testing.T) {
	s := newTestSupervisor(t)
	start(t, s, Component{Name: "a", Path: "/bin/sleep", Args: []string{"600"}})
	if err := s.Stop("a"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * firstBackoff)
	if pid := s.Pid("a"); pid != 0 {
		t.Fatalf("stopped component runs as %d", pid)
	}
	if err := s.Resume(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if s.Pid("a") == 0 {
		t.Error("resumed component does not run")
	}
}

func TestStartReportsWhatTheLogSays(t *testing.T) {
	s := newTestSupervisor(t)
	err := s.Start(t.Context(), Component{Name: "a", Path: "/bin/sh", Args: []string{"-c", "echo bind: address already in use; exit 3"},
		Ready: func(context.Context) error { return errors.New("not yet") }})
	if err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got error %v, want one with the exit status and the log", err)
	}
	if got := s.Components(); len(got) != 0 {
		t.Errorf("component that never was ready is still there: %v", got)
	}
}

func TestCloseEndsWhatIgnoresSIGTERM(t *testing.T) {
	s := newTestSupervisor(t)
	ready := filepath.Join(t.TempDir(), "ready")
	start(t, s, Component{Name: "a", Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; touch " + ready + "; while :; do sleep 600 & wait; done"},
		Ready: func(context.Context) error { _, err := os.Stat(ready); return err }})
	pid := s.Pid("a")
	s.Close()
	if alive(pid) {
		t.Error("process survived Close")
	}
	if err := s.Start(t.Context(), Component{Name: "b", Path: "/bin/true"}); err == nil {
		t.Error("a closed supervisor started a component")
	}
}

func TestCloseDuringStartReturns(t *testing.T) {
	s := newTestSupervisor(t)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Start(context.Background(), Component{Name: "a", Path: "/bin/sleep", Args: []string{"600"},
			Ready: func(context.Context) error { return errors.New("never") }})
	}()
	eventually(t, 5*time.Second, "a process runs", func() bool { return s.Pid("a") != 0 })
	s.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Start succeeded though the supervisor was closed")
		}
	case <-time.After(time.Minute):
		t.Error("Start did not return after Close")
	}
}

func newTestSupervisor(t *testing.T) *Supervisor {
	t.Helper()
	s, err := NewSupervisor(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func start(t *testing.T, s *Supervisor, c Component) {
	t.Helper()
	if err := s.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}

func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}
