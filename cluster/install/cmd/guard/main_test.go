package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProviderHasTheGuard: what the provider embeds is what the manifests say.
func TestProviderHasTheGuard(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../../../providers/runtime/cluster/zz_generated_guard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("the guard has drifted; run make generate: -want, +have:\n%s", diff)
	}
}
