package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

// TestExitCodes are the stock runner's: 0 for a job that was run, 2 for none, 1 for all else.
func TestExitCodes(t *testing.T) {
	s := forgejo.New(forgejo.Options{})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	const uuid = "00000000-0000-4000-8000-000000000000"
	cases := map[string]struct {
		reason string
		args   []string
		want   int
		says   string
	}{
		"Unregistered": {"The server does not know it.", []string{"one-job", "--url", srv.URL, "--uuid", uuid, "--token-url", "file://" + token, "--label", "a:host", "--label", "b:host"}, 1, "unregistered runner"},
		"NoCommand":    {"A command is needed.", nil, 1, "one-job"},
		"NoToken":      {"Tokens are not told on the command line.", []string{"one-job", "--url", srv.URL, "--uuid", uuid, "--token", "x"}, 1, "--token"},
		"BadTokenURL":  {"Tokens are in files.", []string{"one-job", "--url", srv.URL, "--uuid", uuid, "--token-url", "https://x"}, 1, "only file:"},
		"BadLabel":     {"Labels are for hosts.", []string{"one-job", "--url", srv.URL, "--uuid", uuid, "--token-url", "file://" + token, "--label", "a,b:docker"}, 1, `label "a,b:docker"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			if have := run(t.Context(), tc.args, &log, nil); have != tc.want || !strings.Contains(log.String(), tc.says) {
				t.Errorf("%s have %d: %s", tc.reason, have, log.String())
			}
		})
	}
	for err, want := range map[error]int{nil: 0, onejob.ErrNoTask: 2, onejob.ErrCrashed: 1} {
		if have := onejob.ExitCode(err); have != want {
			t.Errorf("%v is %d", err, have)
		}
	}
}
