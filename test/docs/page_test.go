package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const example = "# Title\n\n```console\n$ echo a \\\n    b\na b\n$ cat <<EOF\n$ one\nEOF\n$ true\n```\n```sh\n$ make up\n```\n"

func TestPageIsReadAndWrittenBack(t *testing.T) {
	p, err := parsePage("x.md", example)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example, p.String()); diff != "" {
		t.Error(diff)
	}
	var have []string
	for _, x := range p.pieces {
		if x.command != "" {
			have = append(have, x.command+" -> "+strings.Join(x.output, "|"))
		}
	}
	want := []string{"echo a \\\n    b -> a b", "cat <<EOF\n$ one\nEOF -> ", "true -> "}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

func TestPageRefuses(t *testing.T) {
	cases := map[string]struct{ reason, content, want string }{
		"NoCommand": {reason: "output of nothing cannot be compared", content: "```console\nhello\n```\n", want: "x.md:2: a console block starts with a command"},
		"NoEnd":     {reason: "a block that does not end swallows the page", content: "```console\n$ true\n", want: "does not end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parsePage("x.md", tc.content); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: have error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		reason     string
		want, have string
		matches    bool
	}{
		"Same":      {reason: "the same matches", want: "a\nb", have: "a\nb", matches: true},
		"Other":     {reason: "another word does not", want: "web Running", have: "web Failed"},
		"More":      {reason: "a line too many does not", want: "a", have: "a\nb"},
		"Fewer":     {reason: "a line too few does not", want: "a\nb", have: "a"},
		"Nothing":   {reason: "where nothing is expected, nothing may be printed", want: "", have: "a"},
		"AnyLines":  {reason: "three dots are any lines", want: "a\n...\nd", have: "a\nb\nc\nd", matches: true},
		"NoLines":   {reason: "three dots may be no lines", want: "a\n...\nd", have: "a\nd", matches: true},
		"AfterAny":  {reason: "what follows the dots counts", want: "a\n...\nd", have: "a\nb\nc"},
		"Ages":      {reason: "ages differ", want: "NAME   AGE\nweb   5s", have: "NAME  AGE\nweb  2m10s", matches: true},
		"Numbers":   {reason: "a number is no age", want: "web 10", have: "web 9"},
		"Sizes":     {reason: "a size is no age", want: "20Gi", have: "10Gi"},
		"Pods":      {reason: "hashes differ", want: "globex-devops-7cf7699865-gk92t 1/1", have: "globex-devops-6bb57d7c9c-x2x5q 1/1", matches: true},
		"Tenants":   {reason: "but not what they are of", want: "globex-devops-7cf7699865-gk92t 1/1", have: "acme-devops-7cf7699865-gk92t 1/1"},
		"Addresses": {reason: "ports differ", want: "https://127.0.0.1:1234/x", have: "https://127.0.0.1:20000/x", matches: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := matches(linesOf(tc.want), linesOf(tc.have)); have != tc.matches {
				t.Errorf("%s: have %v", tc.reason, have)
			}
		})
	}
}
