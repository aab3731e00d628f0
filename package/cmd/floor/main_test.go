package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFloorHasNotDrifted(t *testing.T) {
	got, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../../apis/runtime/v1alpha1/zz_generated_floor.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the chart's floor has changed, run make generate: -checked in, +generated:\n%s", diff)
	}
}
