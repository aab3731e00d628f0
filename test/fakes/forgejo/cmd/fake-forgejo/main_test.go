package main

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TestWorldIsServed with what the command line asked for, until it is told to stop.
func TestWorldIsServed(t *testing.T) {
	s, err := world(options{Admin: "root", Token: "secret", Organizations: []string{"acme"}, Repositories: []string{"acme/web", "root/dots"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- serve(ctx, l, s) }()
	for _, scope := range []string{"admin", "orgs/acme", "repos/acme/web", "repos/root/dots", "user"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/api/v1/"+scope+"/actions/runners", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "token secret")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", scope, res.Status)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestWorldThatCannotBeIsSaid(t *testing.T) {
	if _, err := world(options{Admin: "root", Repositories: []string{"nobody/web"}}); err == nil {
		t.Error("a repository of nobody is there")
	}
}
