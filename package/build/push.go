package build

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push an artifact under all its tags, with the credentials that docker has for its registry.
func Push(ctx context.Context, a Artifact) error {
	repo, err := name.NewRepository(a.Repository, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("cannot push to %s: %w", a.Repository, err)
	}
	p, err := remote.NewPusher(remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("cannot push %s: %w", a.Repository, err)
	}
	for _, tag := range a.Tags {
		if err := p.Push(ctx, repo.Tag(tag), a.content); err != nil {
			return fmt.Errorf("cannot push %s:%s: %w", a.Repository, tag, err)
		}
	}
	return nil
}
