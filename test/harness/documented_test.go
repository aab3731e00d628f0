package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocumented(t *testing.T) {
	const page = "## A\n```sh\nno\n```\n### B\ntext\n1. item\n\n   ```sh\n   one x\n   two <<EOF\n   in: it\n   EOF\n   ```\n#### C\n```sh\nthree\n```\n```console\n$ no\n```\n## D\n```sh\n# no\n```\n"
	cases := map[string]struct {
		reason, heading string
		want            []string
	}{
		"Section":  {"From the heading to the next of its level or above.", "### B", []string{"one x", "two <<EOF\nin: it\nEOF", "three"}},
		"Higher":   {"With all below it.", "## A", []string{"no", "one x", "two <<EOF\nin: it\nEOF", "three"}},
		"Comments": {"A comment of a block is no heading.", "## D", []string{"# no"}},
		"None":     {"There is no such heading.", "## E", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, documented(page, tc.heading)); diff != "" {
				t.Errorf("%s\n-want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}
