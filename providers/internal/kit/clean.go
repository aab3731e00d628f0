package kit

import (
	stderrors "errors"
	"regexp"
	"strings"
)

// longest message that reaches a condition, in bytes.
const longest = 1024

// varying is what differs between two runs of the same failure, and what stands for it.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`(?i)(resource ?version"?[:= ]+)"?\d+"?`), "$1<version>"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{6,}\b`), "<address>"},
	{regexp.MustCompile(`(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d+->`), ""},
	{regexp.MustCompile(`\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))*(?: m=[+-][\d.]+)?`), "<time>"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|us|ms)\b|\b(?:\d+h)?(?:\d+m)?\d+\.\d+s\b`), "<duration>"},
	{regexp.MustCompile(`(?i)(request[-_ ]?id"?[:= ]+)"?[-\w]+"?`), "$1<id>"},
}

// lineBreak with the white space around it. kubectl's columns end at the first one.
var lineBreak = regexp.MustCompile(`\s*\n\s*`)

// Clean takes out of an error's message what changes from run to run: UIDs, resource versions, ephemeral ports, times,
// addresses in memory. A condition that carries it then changes only when its cause does. It is one line, so that the
// columns of kubectl show all of it. The error keeps its identity
// for [errors.Is] and [errors.As]. An error of [Ours] is left alone: the UID that it names is what the reader needs.
func Clean(err error) error {
	if err == nil || stderrors.As(err, new(*NotOursError)) {
		return err
	}
	msg := CleanMessage(err.Error())
	if msg == err.Error() {
		return err
	}
	return &cleaned{msg: msg, err: err}
}

// CleanMessage is Clean for text that is no error.
func CleanMessage(msg string) string {
	for _, v := range varying {
		msg = v.what.ReplaceAllString(msg, v.with)
	}
	msg = lineBreak.ReplaceAllString(strings.TrimSpace(msg), " ")
	if len(msg) > longest {
		msg = strings.ToValidUTF8(msg[:longest], "") + "..."
	}
	return msg
}

type cleaned struct {
	msg string
	err error
}

func (c *cleaned) Error() string { return c.msg }
func (c *cleaned) Unwrap() error { return c.err }
