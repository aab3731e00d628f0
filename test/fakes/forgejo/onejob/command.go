package onejob

import (
	"time"

	"github.com/alecthomas/kong"
)

type commandLine struct {
	OneJob struct {
		URL           string        `help:"Address of Forgejo." required:""`
		UUID          string        `help:"UUID of the registration." required:""`
		TokenURL      string        `help:"file: URL of the registration's token." name:"token-url" required:""`
		Label         []string      `help:"Label, name:host. May be given again." sep:"none"`
		Handle        string        `help:"The one attempt of a job to take."`
		Wait          bool          `help:"Wait for a job." short:"w"`
		FetchInterval time.Duration `default:"2s" help:"Time between two questions for a job."`
	} `cmd:"" help:"Run one job." name:"one-job"`
	Version kong.VersionFlag `help:"Say the version." short:"v"`
}

// Parse the command line of forgejo-runner. The token is still to be read from where tokenURL says.
func Parse(args []string) (o Options, tokenURL string, err error) {
	var c commandLine
	k, err := kong.New(&c, kong.Name("forgejo-runner"), kong.Vars{"version": "forgejo-runner version " + Version})
	if err != nil {
		return o, "", err
	}
	if _, err := k.Parse(args); err != nil {
		return o, "", err
	}
	j := c.OneJob
	return Options{URL: j.URL, UUID: j.UUID, Labels: j.Label, Handle: j.Handle, Wait: j.Wait, FetchInterval: j.FetchInterval}, j.TokenURL, nil
}
