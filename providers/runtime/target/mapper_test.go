package target

import (
	"context"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestATargetIsSetUpWithoutAskingIt: a cluster that does not answer holds up nobody who makes it known.
func TestATargetIsSetUpWithoutAskingIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // It takes connections and says nothing.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	targets := New()
	go func() { _ = targets.Start(ctx) }()
	began := time.Now()
	if err := targets.Add("acme-edge", Context, &rest.Config{Host: "http://" + l.Addr().String()}); err != nil {
		t.Errorf("it cannot be made known: %v", err)
	}
	targets.Remove("acme-edge")
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestNameOf(t *testing.T) {
	if got := NameOf("acme", "platform"); got != "platform" {
		t.Errorf("the platform's own cluster is called %s", got)
	}
	if a, b := NameOf("acme", "edge"), NameOf("globex", "edge"); a == b {
		t.Errorf("two tenants' contexts are one: %s", a)
	}
}
