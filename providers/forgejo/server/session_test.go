package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

func TestPoolsOfOneServerShareALook(t *testing.T) {
	w := newWorld(t, loopback)
	_, err := w.forgejo.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
	must(t, err)
	s := w.session()
	if other := w.session(); other != s {
		t.Fatal("the same server, scope and token make two sessions")
	}
	s.Subscribe(linux, 30*time.Second)
	s.Subscribe(windows, time.Minute)
	l := w.looked(s, 0)
	w.clock.Step(30 * time.Second)
	l = w.looked(s, l.Number)
	if len(l.Jobs) != 1 || l.Jobs[0].Handle == "" {
		t.Fatalf("the look has jobs %+v", l.Jobs)
	}
	var woken []string
	w.until("both are woken", func() bool {
		woken = append(woken, w.pools.take()...)
		return slices.Contains(woken, linux.Name) && slices.Contains(woken, windows.Name)
	})
	w.forgejo.ResetCounts()
	for range 3 {
		before := l.Number
		w.clock.Step(30 * time.Second)
		l = w.looked(s, before)
	}
	calls := w.forgejo.Calls()
	if calls[forgejo.RouteJobs] != 3 || calls[forgejo.RouteRunners] != 3 || calls[forgejo.RouteVersion] != 0 {
		t.Errorf("three looks for two pools make these calls: %v", calls)
	}
	if p := s.Poll(); p.Outcome != steading.PollSucceeded || !strings.HasPrefix(p.Version, "15.") {
		t.Errorf("the poll is %+v", p)
	}
}

func TestRegistrationsAreLookedAtBeforeJobs(t *testing.T) {
	w := newWorld(t, loopback)
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultUnavailable}))
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	w.until("the look failed", func() bool { return s.Poll().Outcome == steading.PollFailed })
	if n := w.forgejo.Calls()[forgejo.RouteJobs]; n != 0 {
		t.Errorf("jobs were listed %d times before the registrations", n)
	}
}

// TestAFailedLookJudgesNothing: whatever a server answers, the last look is not given out any more, and no runner is woken.
func TestAFailedLookJudgesNothing(t *testing.T) {
	cases := map[string]struct {
		fault  forgejo.Fault
		reason string
	}{
		"Unavailable":  {fault: forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnavailable}, reason: "ServerUnreachable"},
		"HTML":         {fault: forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultHTML}, reason: "WrongAnswer"},
		"HTML404":      {fault: forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultHTML, Status: 404}, reason: "WrongAnswer"},
		"Unauthorized": {fault: forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnauthorized}, reason: "TokenRefused"},
		"Forbidden":    {fault: forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultForbidden}, reason: "TokenRefused"},
		"Truncated":    {fault: forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultTruncated}, reason: ""},
		"Redirect":     {fault: forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultRedirect}, reason: "WrongAnswer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, loopback)
			s := w.session()
			reg, err := s.Client().Register(t.Context(), "acme-linux-00000001", "")
			must(t, err)
			s.Subscribe(linux, 30*time.Second)
			l := w.looked(s, 0)
			s.Track(reg.ID, client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux-00000001"})
			w.clock.Step(30 * time.Second)
			l = w.looked(s, l.Number)
			w.until("all are told of the good looks", func() bool { return len(w.instances.take()) > 0 })
			w.pools.take()

			must(t, w.forgejo.SetFault(tc.fault))
			must(t, s.Client().Deregister(t.Context(), reg.ID))
			w.clock.Step(30 * time.Second)
			w.until("the look fails", func() bool { return s.Poll().Outcome == steading.PollFailed })
			if _, ok := s.Look(); ok {
				t.Error("the last look is given out after one that failed")
			}
			if tc.reason != "" && string(ReasonOf(s.Poll().Err)) != tc.reason {
				t.Errorf("the reason is %s, not %s: %v", ReasonOf(s.Poll().Err), tc.reason, s.Poll().Err)
			}
			w.until("the pool is told", func() bool { return len(w.pools.take()) > 0 })
			if woken := w.instances.take(); len(woken) > 0 {
				t.Errorf("%v are woken by a look that failed", woken)
			}
			w.forgejo.UnsetFaults(tc.fault.Route, tc.fault.Kind)
			w.clock.Step(30 * time.Second)
			w.looked(s, l.Number)
			w.until("the runner that is not listed is woken", func() bool { return slices.Contains(w.instances.take(), "acme-linux-00000001") })
		})
	}
}

// TestATokenThatNeverWorkedReplacesNoneThatDid: the pool goes by it and says that it is refused, and what is out is looked after
// by the one before; until there is one that works.
func TestATokenThatNeverWorkedReplacesNoneThatDid(t *testing.T) {
	w := newWorld(t, loopback)
	good := w.session()
	good.Subscribe(linux, 30*time.Second)
	w.looked(good, 0)
	put := func(token string) *Session {
		t.Helper()
		secret := w.secret()
		secret.Data["token"] = []byte(token)
		must(t, w.kube.Update(t.Context(), secret))
		s, err := w.servers.Current(t.Context(), w.server(), "tenant-acme")
		must(t, err)
		return s
	}
	bad := put("0123456789abcdef0123456789abcdef01234567")
	if bad == good {
		t.Fatal("another token is not taken up")
	}
	bad.Subscribe(linux, 30*time.Second)
	w.until("the look fails", func() bool { return bad.Poll().Outcome == steading.PollFailed })
	if latest, err := w.servers.Latest(t.Context(), w.server(), "tenant-acme"); err != nil || latest != bad {
		t.Errorf("the pool does not go by the token that is there: %v", err)
	}
	if w.session() != good {
		t.Error("what is out is looked after by a token that never worked")
	}

	token, err := w.forgejo.AddToken("ann", "write:organization")
	must(t, err)
	next := put(token)
	next.Subscribe(linux, 30*time.Second)
	w.looked(next, 0)
	w.until("the new one counts", func() bool { return w.session() == next })
}

// TestAnOutageIsMeasured from the first look that failed to the first that went well.
func TestAnOutageIsMeasured(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	l := w.looked(s, 0)
	if o := s.Poll().Outage; o != 0 {
		t.Errorf("none failed, for %s", o)
	}
	must(t, w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultUnavailable}))
	w.clock.Step(30 * time.Second)
	w.until("the look fails", func() bool { return s.Poll().Outcome == steading.PollFailed })
	w.forgejo.UnsetFaults("", "")
	for range 2 {
		w.clock.Step(30 * time.Second)
		l = w.looked(s, l.Number)
		if o := s.Poll().Outage; o != 30*time.Second {
			t.Errorf("it took %s", o)
		}
	}
}

// TestAScopeThatIsNotThereIsSaid, and is not taken for a token that is refused.
func TestAScopeThatIsNotThereIsSaid(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	w.looked(s, 0)
	must(t, w.forgejo.DeleteOwner("acme"))
	w.clock.Step(30 * time.Second)
	w.until("the look fails", func() bool { return s.Poll().Outcome == steading.PollFailed })
	if err := s.Poll().Err; ReasonOf(err) != steading.ReasonScopeGone || !strings.Contains(err.Error(), "organization acme is not there") {
		t.Errorf("the reason is %s: %v", ReasonOf(err), err)
	}
}

// TestAJobIsAskedForUnlessALookIsYoungEnough.
func TestAJobIsAskedForUnlessALookIsYoungEnough(t *testing.T) {
	w := newWorld(t, loopback)
	id, err := w.forgejo.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
	must(t, err)
	j, err := w.forgejo.Job(id)
	must(t, err)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	l := w.looked(s, 0)
	must(t, w.forgejo.Cancel(id))
	for _, tc := range []struct {
		reason string
		after  time.Time
		calls  int
		want   api.JobStatus
	}{
		{"the look is as old as what is asked about", l.Began, 0, api.JobWaiting},
		{"the look is older: it may have been cancelled since", l.Began.Add(time.Second), 1, ""},
	} {
		w.forgejo.ResetCounts()
		got, err := s.Job(t.Context(), j.Handle, []string{"docker", "arm64"}, tc.after)
		must(t, err)
		if n := w.forgejo.Calls()[forgejo.RouteJobs]; got != tc.want || n != tc.calls {
			t.Errorf("%s: it is %q by %d calls, want %q by %d", tc.reason, got, n, tc.want, tc.calls)
		}
	}
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultHTML}))
	if _, err := s.Job(t.Context(), j.Handle, nil, l.Began.Add(time.Second)); err == nil {
		t.Error("a web page is an answer")
	}
}

func TestARunnerIsWokenWhenItsStateChanges(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	instance := client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux-00000001"}
	reg, err := s.Client().Register(t.Context(), instance.Name, "")
	must(t, err)
	s.Track(reg.ID, instance)
	s.Subscribe(linux, 30*time.Second)
	next := func(l Look) Look {
		w.clock.Step(30 * time.Second)
		return w.looked(s, l.Number)
	}
	l := w.looked(s, 0)
	w.until("it is woken to be seen for the first time", func() bool { return len(w.instances.take()) > 0 })
	l = next(next(l))
	if woken := w.instances.take(); len(woken) > 0 {
		t.Errorf("%v are woken though nothing changed", woken)
	}
	must(t, s.Client().Deregister(t.Context(), reg.ID))
	for range 2 {
		l = next(l)
		w.until("it is woken by each look that does not list it", func() bool { return len(w.instances.take()) > 0 })
	}
	w.servers.Untrack(instance)
	next(l)
	if woken := w.instances.take(); len(woken) > 0 {
		t.Errorf("%v are woken though they are not tracked any more", woken)
	}
}

func TestAGoneRunnerIsAskedForOnce(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	reg, err := s.Client().Register(t.Context(), "acme-linux-00000001", "")
	must(t, err)
	must(t, s.Client().Deregister(t.Context(), reg.ID))
	for range 3 {
		if _, err := s.Runner(t.Context(), reg.ID); !errors.Is(err, api.ErrGone) {
			t.Fatalf("want it gone, got %v", err)
		}
	}
	if n := w.forgejo.Calls()[forgejo.RouteRunner]; n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
}

// TestTheUserIsAskedForOnce, where the scope is the user's. It is nobody when it is not told, but while the server does not answer.
func TestTheUserIsAskedForOnce(t *testing.T) {
	w := newWorld(t, loopback)
	session := func(scope string) *Session {
		t.Helper()
		token, err := w.forgejo.AddToken("ann", scope)
		must(t, err)
		secret := w.secret()
		secret.Data["token"] = []byte(token)
		must(t, w.kube.Update(t.Context(), secret))
		f := w.server()
		f.Scope = steading.ForgejoScope{User: &steading.WholeScope{}}
		s, err := w.servers.Current(t.Context(), f, "tenant-acme")
		must(t, err)
		return s
	}
	s := session("write:user")
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteUser, Kind: forgejo.FaultUnavailable, Times: 1}))
	if _, err := s.User(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("the server does not answer: %v", err)
	}
	w.forgejo.ResetCounts()
	s.Subscribe(linux, 30*time.Second)
	if l := w.looked(s, 0); l.User == 0 {
		t.Error("a look does not say whose it is")
	}
	for range 3 {
		if id, err := s.User(t.Context()); err != nil || id == 0 {
			t.Errorf("the user is %d: %v", id, err)
		}
	}
	if n := w.forgejo.Calls()[forgejo.RouteUser]; n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	if id, err := session("write:repository").User(t.Context()); err != nil || id != 0 {
		t.Errorf("a token that may not tell is no error: %d, %v", id, err)
	}
}

// TestATokenThatIsDeletedFirst keeps no registration from being taken off (ARC#4655).
func TestATokenThatIsDeletedFirst(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	reg, err := s.Client().Register(t.Context(), "acme-linux-00000001", "")
	must(t, err)
	must(t, w.kube.Delete(t.Context(), w.secret()))
	if _, err := w.servers.Current(t.Context(), w.server(), "tenant-acme"); ReasonOf(err) != steading.ReasonTokenMissing {
		t.Errorf("the token that is there now is %v", err)
	}
	must(t, w.session().Client().Deregister(t.Context(), reg.ID))
}

func TestANewTokenMakesANewSession(t *testing.T) {
	w := newWorld(t, loopback)
	old := w.session()
	other, err := w.forgejo.AddToken("ann", "write:organization")
	must(t, err)
	secret := w.secret()
	secret.Data["token"] = []byte(other)
	must(t, w.kube.Update(t.Context(), secret))
	if w.session() != old {
		t.Error("a token is read again before it is asked for")
	}
	now, err := w.servers.Current(t.Context(), w.server(), "tenant-acme")
	must(t, err)
	if now == old || w.session() != now {
		t.Error("the new token is not used")
	}
	instance := client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux-00000001"}
	old.Track(1, instance)
	now.Track(1, instance)
	if len(old.tracked) != 0 {
		t.Error("a runner is tracked by two sessions")
	}
}

func TestWhatATokenSecretLacksIsSaid(t *testing.T) {
	w := newWorld(t, loopback)
	secret := w.secret()
	secret.Data = map[string][]byte{"password": []byte("hunter2")}
	must(t, w.kube.Update(t.Context(), secret))
	_, err := w.servers.Session(t.Context(), w.server(), "tenant-acme")
	if ReasonOf(err) != steading.ReasonTokenMissing || !strings.Contains(fmt.Sprint(err), "key token") || strings.Contains(fmt.Sprint(err), "hunter2") {
		t.Errorf("error %v", err)
	}
}

// TestALoopbackServerIsRefused unless the operator allows it.
func TestALoopbackServerIsRefused(t *testing.T) {
	w := newWorld(t)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	w.until("the look fails", func() bool { return s.Poll().Outcome == steading.PollFailed })
	err := s.Poll().Err
	if ReasonOf(err) != steading.ReasonAddressRefused || !strings.Contains(err.Error(), "spec.allowedServers") {
		t.Errorf("%s: %v", ReasonOf(err), err)
	}
	if calls := w.forgejo.Calls(); len(calls) != 0 {
		t.Errorf("it was called all the same: %v", calls)
	}
}

func TestPlainHTTPOnlyWhereTheOperatorAllowsIt(t *testing.T) {
	policy := address.Policy{What: "Forgejo server", Allowed: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if err := newDialer("http://git", policy).mayBePlain("10.1.2.3:80"); err != nil {
		t.Errorf("an allowed address: %v", err)
	}
	// It is refused before anything is sent.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	d := newDialer("http://git", policy)
	_, err := d.dial(ctx, "tcp", "203.0.113.7:80")
	if err = d.explain(err); ReasonOf(err) != steading.ReasonAddressRefused || !strings.Contains(fmt.Sprint(err), "https://") {
		t.Errorf("any other: %v", err)
	}
	for url, want := range map[string]bool{"HTTP://git": true, "http://git": true, "https://git": false} {
		if newDialer(url, policy).plain != want {
			t.Errorf("%s is plain: %t", url, !want)
		}
	}
}

// TestAServerIsOneHoweverItIsWritten, but for the case of its path, which is a matter of the server.
func TestAServerIsOneHoweverItIsWritten(t *testing.T) {
	org := steading.ForgejoScope{Organization: "acme"}
	cases := map[string]struct {
		url   string
		scope steading.ForgejoScope
		want  bool
	}{
		"Itself":     {url: "https://example.com/git", scope: org, want: true},
		"Slash":      {url: "https://example.com/git/", scope: org, want: true},
		"Host":       {url: "HTTPS://Example.COM/git", scope: org, want: true},
		"Path":       {url: "https://example.com/Git", scope: org},
		"Scheme":     {url: "http://example.com/git", scope: org},
		"Port":       {url: "https://example.com:3000/git", scope: org},
		"OtherScope": {url: "https://example.com/git", scope: steading.ForgejoScope{Instance: &steading.WholeScope{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one := steading.ForgejoServer{URL: "https://example.com/git", Scope: org}
			other := steading.ForgejoServer{URL: tc.url, Scope: tc.scope}
			if Same(one, other) != tc.want {
				t.Errorf("the same: %t, want %t", !tc.want, tc.want)
			}
			policy := address.Policy{}
			if same := keyOf(one, "token", policy) == keyOf(other, "token", policy); same != tc.want {
				t.Errorf("they share a session: %t, want %t", same, tc.want)
			}
		})
	}
}

func TestASessionThatNobodyUsesEnds(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	w.looked(s, 0)
	s.Unsubscribe(linux)
	w.until("it stops", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.running
	})
	w.clock.Step(idle - time.Second)
	if w.session() != s {
		t.Error("it ended too early")
	}
	w.clock.Step(idle)
	if w.session() == s {
		t.Error("it is kept for ever, with its token")
	}
}

// TestASessionThatIsTakenUpAgainLooksAnew, and at once: its last look may be of long ago.
func TestASessionThatIsTakenUpAgainLooksAnew(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, time.Hour)
	l := w.looked(s, 0)
	s.Unsubscribe(linux)
	w.until("it stops", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.running
	})
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultHang}))
	w.clock.Step(5 * time.Minute)
	s.Subscribe(linux, time.Hour)
	if old, ok := s.Look(); ok {
		t.Errorf("look %d is given out, of %s ago", old.Number, w.clock.Since(old.Began))
	}
	w.forgejo.UnsetFaults(forgejo.RouteRunners, forgejo.FaultHang)
	w.looked(s, l.Number)
}

func TestALookOutOfTurn(t *testing.T) {
	w := newWorld(t, loopback)
	s := w.session()
	s.Subscribe(linux, time.Hour)
	l := w.looked(s, 0)
	s.Again()
	w.clock.Step(atLeast)
	w.looked(s, l.Number)
}

func TestAnOldServerIsNamed(t *testing.T) {
	w := newWorld(t, loopback)
	w.forgejo.SetVersion("14.0.1+gitea-1.22.0")
	s := w.session()
	s.Subscribe(linux, 30*time.Second)
	w.until("the look fails", func() bool { return s.Poll().Outcome == steading.PollFailed })
	if err := s.Poll().Err; ReasonOf(err) != steading.ReasonServerUnsupported || !strings.Contains(err.Error(), "14.0.1") {
		t.Errorf("%s: %v", ReasonOf(err), err)
	}
	w.forgejo.SetVersion(forgejo.DefaultVersion)
	w.clock.Step(30 * time.Second)
	w.looked(s, 0)
	if diff := cmp.Diff(steading.PollSucceeded, s.Poll().Outcome); diff != "" {
		t.Errorf("after its upgrade: -want, +got:\n%s", diff)
	}
}
