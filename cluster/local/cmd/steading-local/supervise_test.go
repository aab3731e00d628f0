package main

import (
	"strings"
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
)

// One node is not silently taken for another: what was asked for would look like what it is not.
func TestNodeOfARunningPlatformStays(t *testing.T) {
	s := &supervisor{node: local.NodeKWOK, platform: &platform.Platform{}}
	m := s.install(t.Context(), upRequest{Node: local.NodeContainerd})
	if !m.Last || !strings.Contains(m.Error, "cannot have containerd run the pods: kwok does") || !strings.Contains(m.Error, "make down") {
		t.Errorf("got %+v", m)
	}
}
