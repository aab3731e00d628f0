package pool

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
)

// claimOf a pool.
func claimOf(r *forgejov1.Runner) kit.Claim { return kit.RunnerPoolClaim(r.Spec.ForProvider.Claim) }

// tokenReader is the right to read a pool's token.
func tokenReader(r *forgejov1.Runner) *rbacv1.RoleBinding {
	p := r.Spec.ForProvider
	return referred.Right(names.ProviderForgejo, p.Claim.Namespace, names.TokenReader(p.Claim.Name), names.TokenReaderRole, p.Identity)
}

// connect to the server by the token that is there now, and have it watched. What is wrong with the server or the token is no
// error: the session there was goes on telling what becomes of the runners.
func (p *pass) connect(ctx context.Context) error {
	f := p.runner.Spec.ForProvider
	if err := p.giveRight(ctx); err != nil {
		return err
	}
	secret := client.ObjectKey{Namespace: f.Claim.Namespace, Name: f.Settings.Forgejo.TokenSecretRef.Name}
	p.informed.Of(ctx, p.key.Name, referred.Subject{Resource: referred.Secrets, Key: secret})

	session, err := p.renew(ctx)
	known := (*server.UnusableError)(nil)
	if err != nil && !errors.As(err, &known) {
		// Somebody may have taken the right away.
		p.memory.right = false
		p.memory.token.Store(true)
		return err
	}
	p.trouble, p.memory.trouble = err, err
	if err == nil {
		p.subscribe(session)
	}
	p.session = p.memory.session
	return nil
}

// giveRight to read the token, once in the life of this process.
func (p *pass) giveRight(ctx context.Context) error {
	if p.memory.right {
		return nil
	}
	if err := p.rights.Give(ctx, tokenReader(p.runner), p.runner.Spec.ForProvider.Identity, claimOf(p.runner)); err != nil {
		return err
	}
	p.memory.right = true
	return nil
}

// renew the session, reading the token if it may have changed.
func (p *pass) renew(ctx context.Context) (*server.Session, error) {
	f := p.runner.Spec.ForProvider
	if p.memory.token.Swap(false) || p.memory.trouble != nil {
		return p.servers.Current(ctx, f.Settings.Forgejo, f.Claim.Namespace)
	}
	return p.servers.Latest(ctx, f.Settings.Forgejo, f.Claim.Namespace)
}

// subscribe to a session, and to no other.
func (p *pass) subscribe(s *server.Session) {
	if before := p.memory.session; before != nil && before != s {
		before.Unsubscribe(p.key)
		p.memory.replaced = p.memory.replaced || !before.SameToken(s)
	}
	p.memory.session = s
	s.Subscribe(p.key, time.Duration(p.runner.Spec.ForProvider.Settings.PollIntervalSeconds)*time.Second)
}

// look that counts: of the session by the token and settings of now, if the server has not failed since.
func (p *pass) look() (*server.Look, LookID) {
	if p.session == nil || p.trouble != nil {
		return nil, LookID{}
	}
	l, ok := p.session.Look()
	if !ok {
		return nil, LookID{}
	}
	return &l, LookID{Session: p.session.ID(), Number: l.Number}
}
