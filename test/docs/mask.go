package docs

import (
	"regexp"
	"strings"
)

// masks are what differs from run to run, and what it is compared as.
var masks = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "HOST"},
	// Ages, and how often an event was seen within one.
	{regexp.MustCompile(` \(x\d+ over [\dsmhd]+\)`), ""},
	{regexp.MustCompile(`(^|\s)(\d+[smhd]){1,2}(\s|$)`), "${1}AGE${3}"},
	{regexp.MustCompile(`<invalid>`), "AGE"},
	// Names that are given by Kubernetes or hold a hash: pods, replica sets, composites, usage events.
	{regexp.MustCompile(`-[0-9a-f]{7,10}-[0-9a-z]{5}\b`), "-HASH-NAME"},
	{regexp.MustCompile(`-(provisioned|started|stopped|deleted)-[0-9a-f]{10}\b`), "-${1}-HASH"},
	// Addresses that Kubernetes gives.
	{regexp.MustCompile(`\b10\.(96|244)\.\d+\.\d+\b`), "ADDRESS"},
}

var spaces = regexp.MustCompile(`\s+`)

// mask a line: what differs from run to run, and how wide columns are.
func mask(line string) string {
	line = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
	for _, m := range masks {
		line = m.what.ReplaceAllString(line, m.as)
	}
	return line
}

// anyLines in expected output.
const anyLines = "..."

// matches reports whether output is what is expected.
func matches(want, have []string) bool {
	if len(want) == 0 {
		return len(have) == 0
	}
	if strings.TrimSpace(want[0]) == anyLines {
		for i := range len(have) + 1 {
			if matches(want[1:], have[i:]) {
				return true
			}
		}
		return false
	}
	return len(have) > 0 && mask(want[0]) == mask(have[0]) && matches(want[1:], have[1:])
}
