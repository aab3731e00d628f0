package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
)

// An Answer to whether an image is published.
type Answer string

// Answers.
const (
	// Present: the registry served its manifest.
	Present Answer = "Present"
	// Missing: a credential that reads the control image gets a definite not-found.
	Missing Answer = "Missing"
	// Inconclusive: anything else.
	Inconclusive Answer = "Inconclusive"
)

// A Finding is what a probe came to.
type Finding struct {
	Answer Answer
	// Message says how, in a sentence that holds nothing secret.
	Message string
}

// Probe finds out whether image is published. Many registries answer a caller who may not see an image as if it were
// absent, so absence is believed only of a caller who is seen to read the control image, on the same host and with the
// same credential, and who either has a credential or needs none.
func (c Client) Probe(ctx context.Context, control, image string) Finding {
	f := c.probe(ctx, control, image)
	requests.WithLabelValues(operationProbe, map[Answer]string{Present: "ok", Missing: "missing", Inconclusive: "error"}[f.Answer]).Inc()
	return f
}

func (c Client) probe(ctx context.Context, control, image string) Finding {
	controlRepo, controlTag, err := c.tag(control)
	if err != nil {
		return inconclusive("cannot parse the control image %s", control)
	}
	repo, tag, err := c.tag(image)
	if err != nil {
		return inconclusive("cannot parse the image %s", image)
	}
	if controlRepo.RegistryStr() != repo.RegistryStr() {
		return inconclusive("the control image %s is on another registry than %s", control, image)
	}
	proven, err := c.ask(ctx, controlRepo, controlTag)
	if err != nil {
		return inconclusive("cannot read the control image %s: %s", control, reason(err))
	}
	_, err = c.ask(ctx, repo, tag)
	switch {
	case err == nil:
		return Finding{Answer: Present, Message: fmt.Sprintf("%s is published", image)}
	case !errors.Is(err, ErrAbsent):
		return inconclusive("cannot tell whether %s is published: %s", image, reason(err))
	case !proven:
		return inconclusive("%s is not visible without a credential, which does not mean that it is missing", image)
	default:
		return Finding{Answer: Missing, Message: fmt.Sprintf("%s is not published", image)}
	}
}

// ask reads an image's manifest and reports whether a not-found by this caller would mean anything.
func (c Client) ask(ctx context.Context, repo name.Repository, tag string) (proven bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	s, err := c.session(ctx, repo, maxManifest)
	if err != nil {
		return false, err
	}
	_, err = s.manifest(ctx, repo, tag)
	return s.credential || s.open, err
}

func (c Client) tag(image string) (name.Repository, string, error) {
	ref, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return name.Repository{}, "", err
	}
	repo, err := c.repository(ref.Repository.Name())
	return repo, ref.TagStr(), err
}

func inconclusive(format string, args ...any) Finding {
	return Finding{Answer: Inconclusive, Message: fmt.Sprintf(format, args...)}
}
