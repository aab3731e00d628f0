package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/internal/address"
)

// idle is how long a session that nobody uses is kept, with its token.
const idle = 10 * time.Minute

// Options of the servers.
type Options struct {
	// Reader of the ClusterProviderConfig. It may be a cache.
	Reader client.Reader
	// Uncached reads Secrets.
	Uncached client.Reader
	// ControlPlane is the address of its API server, where no Forgejo is.
	ControlPlane string
	// Clock that looks go by.
	Clock clock.WithTicker
	// Log to.
	Log logging.Logger
}

// Servers are the sessions with all servers. They are added to the manager, which has them look.
type Servers struct {
	o         Options
	pools     waker
	instances waker
	begun     beginners

	mu       sync.Mutex
	sessions map[string]*Session
	// tokens were read last, and proven are those that a look succeeded with last.
	tokens, proven map[tokenRef]string
	// tracks are the sessions by which instances are tracked.
	tracks map[client.ObjectKey]*Session
}

// New returns servers, none yet.
func New(o Options) *Servers {
	return &Servers{
		o: o, begun: beginners{some: make(chan struct{}, 1)},
		sessions: map[string]*Session{}, tokens: map[tokenRef]string{}, proven: map[tokenRef]string{}, tracks: map[client.ObjectKey]*Session{},
	}
}

// Pools is a source of the Runners that a look concerns.
func (s *Servers) Pools() source.Source { return s.pools.source() }

// Instances is a source of the RunnerInstances that a look concerns.
func (s *Servers) Instances() source.Source { return s.instances.source() }

// Session with a server, by the token in a Secret of the namespace. A token that was read before is not read again, so that a
// Secret that is deleted first keeps no registration from being taken off; nor does one that was changed into a token which never
// worked. The error may be a [UnusableError].
func (s *Servers) Session(ctx context.Context, f steading.ForgejoServer, namespace string) (*Session, error) {
	return s.remembered(ctx, f, namespace, s.proven, s.tokens)
}

// Latest is Session by the token that was read last, whether or not it works.
func (s *Servers) Latest(ctx context.Context, f steading.ForgejoServer, namespace string) (*Session, error) {
	return s.remembered(ctx, f, namespace, s.tokens)
}

// remembered session by the first of the tokens that there is, or by the one that is in the Secret now.
func (s *Servers) remembered(ctx context.Context, f steading.ForgejoServer, namespace string, tokens ...map[tokenRef]string) (*Session, error) {
	for _, all := range tokens {
		s.mu.Lock()
		token, ok := all[refOf(f, namespace)]
		s.mu.Unlock()
		if ok {
			return s.session(ctx, f, namespace, token)
		}
	}
	return s.Current(ctx, f, namespace)
}

// Current is Session by the token that is in the Secret now.
func (s *Servers) Current(ctx context.Context, f steading.ForgejoServer, namespace string) (*Session, error) {
	token, err := readToken(ctx, s.o.Uncached, refOf(f, namespace))
	if err != nil {
		return nil, err
	}
	session, err := s.session(ctx, f, namespace, token)
	if err == nil {
		s.mu.Lock()
		s.tokens[refOf(f, namespace)] = token
		s.mu.Unlock()
	}
	return session, err
}

// prove the token of a session, with which a look succeeded.
func (s *Servers) prove(one *Session) {
	refs := one.places()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range refs {
		if s.tokens[r] == one.token { // It was not changed since.
			s.proven[r] = one.token
		}
	}
}

// session by a token, the one there is or a new one.
func (s *Servers) session(ctx context.Context, f steading.ForgejoServer, namespace, token string) (*Session, error) {
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	scope, err := scopeOf(f.Scope)
	if err != nil {
		return nil, err
	}
	key := keyOf(f, token, policy)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	s.collect(now)
	have := s.sessions[key]
	if have == nil {
		d := newDialer(f.URL, policy)
		c, err := api.New(api.Config{URL: f.URL, Token: token, Scope: scope, CA: f.CABundle, Dial: d.dial, Observe: observe})
		if err != nil {
			return nil, problem(steading.ReasonServerUnreachable, "spec.forgejo: %s", err)
		}
		have = newSession(s, key, urlOf(f.URL), c, d)
		have.token = token
		s.sessions[key] = have
	}
	have.use(refOf(f, namespace), now)
	return have, nil
}

// collect the sessions that nobody uses, with their tokens. The lock is held.
func (s *Servers) collect(now time.Time) {
	for key, have := range s.sessions {
		refs, ok := have.idle(now)
		if !ok {
			continue
		}
		delete(s.sessions, key)
		have.client.Close()
		for _, r := range refs {
			for _, all := range []map[tokenRef]string{s.tokens, s.proven} {
				if all[r] == have.token {
					delete(all, r)
				}
			}
		}
	}
}

// policy of the addresses that servers may have.
func (s *Servers) policy(ctx context.Context) (address.Policy, error) {
	p := address.Policy{What: "Forgejo server", Setting: setting, AllowedBy: allowedBy}
	config := &forgejov1.ClusterProviderConfig{}
	err := s.o.Reader.Get(ctx, client.ObjectKey{Name: names.DefaultProviderConfig}, config)
	if err != nil && !kerrors.IsNotFound(err) {
		return p, errors.Wrapf(err, "cannot get the ClusterProviderConfig %s", names.DefaultProviderConfig)
	}
	if p.Allowed, err = address.ParseAllowed(allowedBy, config.Spec.AllowedServers); err != nil {
		return p, err
	}
	p.ControlPlane, err = address.Of(ctx, s.o.ControlPlane)
	return p, err
}

// keyOf a session: two that differ in nothing else are one.
func keyOf(f steading.ForgejoServer, token string, p address.Policy) string {
	h := sha256.New()
	for _, part := range []string{urlOf(f.URL), scopeKey(f.Scope), token, string(f.CABundle), p.Key()} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Same reports whether registrations with one are registrations with the other: they are one server, in the same scope.
func Same(a, b steading.ForgejoServer) bool {
	return urlOf(a.URL) == urlOf(b.URL) && scopeKey(a.Scope) == scopeKey(b.Scope)
}

// urlOf a server, written one way. Its path is another one's if its case differs.
func urlOf(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		raw = u.String()
	}
	return strings.TrimRight(raw, "/")
}

func scopeKey(s steading.ForgejoScope) string {
	return fmt.Sprintf("%t/%s/%t/%s", s.Instance != nil, s.Organization, s.User != nil, s.Repository)
}

func scopeOf(s steading.ForgejoScope) (api.Scope, error) {
	switch {
	case s.Instance != nil:
		return api.Instance(), nil
	case s.User != nil:
		return api.User(), nil
	case s.Organization != "":
		return api.Organization(s.Organization), nil
	}
	owner, name, ok := strings.Cut(s.Repository, "/")
	if !ok {
		return api.Scope{}, problem(steading.ReasonWrongAnswer, "spec.forgejo.scope names nothing: give one of instance, organization, user and repository")
	}
	return api.Repository(owner, name), nil
}

// Start has the sessions look, until ctx is done.
func (s *Servers) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, one := range s.begun.take() {
			running.Go(func() { one.run(ctx) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.begun.some:
		}
	}
}

// beginners are the sessions that somebody began to use, and that do not look yet.
type beginners struct {
	// some is for when there are any.
	some chan struct{}

	mu  sync.Mutex
	all []*Session
}

func (b *beginners) add(s *Session) {
	b.mu.Lock()
	b.all = append(b.all, s)
	b.mu.Unlock()
	select {
	case b.some <- struct{}{}:
	default: // They are taken together.
	}
}

func (b *beginners) take() []*Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.all
	b.all = nil
	return all
}

// moved returns the session by which an instance was tracked before, nil if it is the same or none was.
func (s *Servers) moved(instance client.ObjectKey, to *Session) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.tracks[instance]
	if to == nil {
		delete(s.tracks, instance)
	} else {
		s.tracks[instance] = to
	}
	if before == to {
		return nil
	}
	return before
}

// Untrack an instance that is judged and has nothing on the server any more.
func (s *Servers) Untrack(instance client.ObjectKey) {
	if before := s.moved(instance, nil); before != nil {
		before.untrack(instance)
	}
}
