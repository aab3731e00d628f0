package onejob

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Version that the runner declares.
const Version = "v12.8.0-fake"

// Intervals and limits of the stock runner.
const (
	FetchInterval  = 2 * time.Second
	ReportInterval = time.Second
	RetryDelay     = 100 * time.Millisecond

	fetchTimeout = 5 * time.Second
	callTimeout  = time.Minute
	maxRetries   = 10
)

// Options of a runner.
type Options struct {
	// URL of Forgejo.
	URL string
	// UUID and Token of the registration.
	UUID, Token string
	// Labels as on the command line, name:host each.
	Labels []string
	// Handle of the only attempt of a job to take. Empty: any job.
	Handle string
	// Wait for a task, for ever. Otherwise it is asked for once.
	Wait bool
	// FetchInterval between two questions for a task. 0: [FetchInterval].
	FetchInterval time.Duration
	// ReportInterval between two reports on a task. 0: [ReportInterval].
	ReportInterval time.Duration
	// RetryDelay before the last report is made again, doubling up to ten times. 0: [RetryDelay].
	RetryDelay time.Duration
	// Clock that intervals and sleeps go by. Nil: the real one.
	Clock clock.WithTicker
	// Log of the runner itself. Nil: none.
	Log io.Writer
	// Stop is what SIGTERM is to the command: when it is closed, polling ends well, and a task ends as cancelled. Nil: never.
	Stop <-chan struct{}
	// Client for HTTP. Nil: one with the stock runner's timeout of a minute.
	Client *http.Client
}

func (o *Options) setDefaults() {
	o.FetchInterval = cmp.Or(o.FetchInterval, FetchInterval)
	o.ReportInterval = cmp.Or(o.ReportInterval, ReportInterval)
	o.RetryDelay = cmp.Or(o.RetryDelay, RetryDelay)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: callTimeout}
	}
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// valid options, and the names of the labels.
func (o *Options) valid() ([]string, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("invalid url %q: http or https is required", o.URL)
	}
	if !uuidForm.MatchString(o.UUID) {
		return nil, fmt.Errorf("invalid uuid %q", o.UUID)
	}
	if o.Token == "" {
		return nil, errors.New("the token is empty")
	}
	names := make([]string, len(o.Labels))
	for i, l := range o.Labels {
		if names[i], err = label(l); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// label is name:host. The stock runner demands a docker socket for all others but lxc.
func label(l string) (string, error) {
	l, _, _ = strings.Cut(l, "?")
	name, schema, _ := strings.Cut(l, ":")
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return "", fmt.Errorf("invalid label %q: names are not empty, and neither start nor end with a space", l)
	case schema != "host":
		return "", fmt.Errorf("label %q: cannot ping the docker daemon, is it running?", l)
	}
	return name, nil
}

// TokenFrom a file: URL, in which $CREDENTIALS_DIRECTORY is what systemd sets it to.
func TokenFrom(tokenURL string) (string, error) {
	const credentials = "$CREDENTIALS_DIRECTORY"
	tokenURL = strings.ReplaceAll(tokenURL, credentials, os.Getenv(strings.TrimPrefix(credentials, "$")))
	u, err := url.Parse(tokenURL)
	if err != nil || u.Scheme != "file" {
		return "", fmt.Errorf("invalid token-url %q: only file: is supported", tokenURL)
	}
	raw, err := os.ReadFile(u.Path) //nolint:gosec // Whoever starts the command says which file.
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("there is no token in %q", tokenURL)
	}
	return token, nil
}
