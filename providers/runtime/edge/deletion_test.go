package edge

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// stands is a world in which an Edge is exposed, and has its certificate.
func stands(t *testing.T) (*world, *v1alpha1.Edge) {
	t.Helper()
	w := newWorld(t, environment()...)
	mg := edge()
	w.converge(mg)
	w.issue(mg)
	w.converge(mg)
	w.told()
	w.writes = nil
	return w, mg
}

// pass is one of the managed reconciler's on an Edge that is being deleted. It reports whether the Edge is gone.
func (w *world) pass(mg *v1alpha1.Edge) bool {
	w.t.Helper()
	obs, err := w.e.Observe(context.Background(), mg)
	if err != nil {
		w.t.Fatal(err)
	}
	if !obs.ResourceExists {
		return true
	}
	if _, err := w.e.Delete(context.Background(), mg); err != nil {
		w.t.Fatal(err)
	}
	return false
}

func (w *world) put(kind schema.GroupVersionKind, namespace, name string, f func(o client.Object, content map[string]any)) {
	w.t.Helper()
	u := newObject(kind, namespace, name)
	f(u, u.Object)
	if err := w.Create(context.Background(), u); err != nil {
		w.t.Fatal(err)
	}
}

func challenge(w *world) {
	w.put(challengeKind, names.EdgeNamespace, "acme-dev-1-2-3", func(o client.Object, c map[string]any) {
		o.SetFinalizers([]string{"acme.cert-manager.io/finalizer"})
		c["spec"] = map[string]any{"dnsName": "acme-dev.services.example.com"}
	})
}

func (w *world) remainder() *v1alpha1.EdgeRemainder {
	w.t.Helper()
	r := &v1alpha1.EdgeRemainder{}
	err := w.Get(context.Background(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-dev-uid-1"}, r)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) wantNothingLeft() {
	w.t.Helper()
	for _, what := range []struct {
		kind      schema.GroupVersionKind
		namespace string
		name      string
	}{
		{dnsEndpointKind, names.EdgeNamespace, "acme-dev"}, {certificateKind, names.EdgeNamespace, "acme-dev"},
		{secretKind, names.EdgeNamespace, "acme-dev-wildcard-tls"}, {secretKind, "acme-dev", "acme-dev-wildcard-tls"},
		{ingressKind, "acme-dev", "acme-edge"},
	} {
		if w.exists(what.kind, what.namespace, what.name) {
			w.t.Errorf("left behind: %s %s/%s", what.kind.Kind, what.namespace, what.name)
		}
	}
	ns := &corev1.Namespace{}
	if err := w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, ns); err == nil {
		if _, ok := ns.Annotations[names.AnnotationHostSuffix]; ok {
			w.t.Error("the namespace may still route hosts")
		}
	}
}

func TestDeletion(t *testing.T) {
	deleteObj := func(w *world, obj client.Object) {
		if err := w.Delete(context.Background(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		world  func(*world)
		// after a minute, what the remainder is left with; empty: the Edge ended clean by itself.
		left string
		// held is whether what is in the namespace stays for now.
		held bool
		// stays is not the Edge's to delete.
		stays func(*world) bool
	}{
		"Clean": {reason: "everything can be deleted"},
		"DNSOperatorGone": {reason: "the kind went with its objects: there is nothing to clean, and nothing to wait for", world: func(w *world) {
			w.absent[dnsEndpointKind] = true
			deleteObj(w, newObject(dnsEndpointKind, names.EdgeNamespace, "acme-dev"))
		}},
		"CertificateOperatorGone": {
			reason: "its Secret is still the Edge's to delete",
			world: func(w *world) {
				w.absent[certificateKind], w.absent[challengeKind] = true, true
				deleteObj(w, newObject(certificateKind, names.EdgeNamespace, "acme-dev"))
			},
		},
		"NamespaceGone": {
			reason: "with the namespace the routes are gone",
			world: func(w *world) {
				deleteObj(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}})
				deleteObj(w, copyOf(w))
				deleteObj(w, newObject(ingressKind, "acme-dev", "acme-edge"))
			},
		},
		"NamespaceGoes": {
			reason: "the routes go with the namespace, however long that takes, and the deployer may be gone already",
			world: func(w *world) {
				ns := &corev1.Namespace{}
				if err := w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, ns); err != nil {
					w.t.Fatal(err)
				}
				ns.Finalizers = []string{"example.com/stuck"}
				if err := w.Update(context.Background(), ns); err != nil {
					w.t.Fatal(err)
				}
				deleteObj(w, ns)
				deleteObj(w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: names.Deployer}})
			},
			held: true,
		},
		"Challenge": {
			reason: "cert-manager has to take its record out of the zone, and does not", world: challenge,
			left: "Challenge steading-edge/acme-dev-1-2-3 (finalizers: acme.cert-manager.io/finalizer)",
		},
		"RecordsHeld": {
			reason: "something holds on to the DNSEndpoint",
			world: func(w *world) {
				u := w.get(dnsEndpointKind, names.EdgeNamespace, "acme-dev")
				u.SetFinalizers([]string{"example.com/stuck"})
				if err := w.Update(context.Background(), u); err != nil {
					w.t.Fatal(err)
				}
			},
			left: "DNSEndpoint steading-edge/acme-dev (finalizers: example.com/stuck)",
		},
		"Unreachable": {
			reason: "the cluster does not answer", world: func(w *world) { w.unreachable = true },
			left: "cannot reach the cluster of context platform: its API server does not answer",
		},
		"Foreign": {
			reason: "what carries another identity, or none, stays",
			world: func(w *world) {
				w.put(dnsEndpointKind, names.EdgeNamespace, "acme-dev2", func(o client.Object, _ map[string]any) {
					kit.Stamp(o, v1alpha1.Identity{Tenant: "acme", Environment: "dev2", UID: "uid-3"})
				})
				w.put(secretKind, names.EdgeNamespace, "account-key", func(client.Object, map[string]any) {})
			},
			stays: func(w *world) bool {
				return w.exists(dnsEndpointKind, names.EdgeNamespace, "acme-dev2") && w.exists(secretKind, names.EdgeNamespace, "account-key")
			},
		},
		"OlderZone": {
			reason: "what an Edge made when it was in another zone, under other names, is found by identity",
			world: func(w *world) {
				w.put(httpRouteKind, "acme-dev", "acme-edge-old", func(o client.Object, _ map[string]any) { stampInside(o, id) })
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, mg := stands(t)
			if tc.world != nil {
				tc.world(w)
			}
			deletedAt(now)(mg)
			gone := false
			for range 3 {
				gone = gone || w.pass(mg)
			}
			if gone != (tc.left == "") {
				t.Fatalf("%s: gone within a minute: %v", tc.reason, gone)
			}
			if tc.stays != nil && !tc.stays(w) {
				t.Errorf("%s: it did not", tc.reason)
			}
			if tc.held {
				return
			}
			if tc.left == "" {
				w.wantNothingLeft()
				if w.exists(httpRouteKind, "acme-dev", "acme-edge-old") || w.remainder() != nil {
					t.Errorf("%s: something is left", tc.reason)
				}
				return
			}
			w.clock.SetTime(now.Add(59 * time.Second))
			if w.pass(mg) || w.remainder() != nil {
				t.Fatalf("%s: it gave up before its minute was over", tc.reason)
			}
			w.clock.SetTime(now.Add(time.Minute))
			if !w.pass(mg) {
				t.Fatalf("%s: it did not go when its minute was over", tc.reason)
			}
			r := w.remainder()
			if r == nil {
				t.Fatalf("%s: what is left is forgotten", tc.reason)
			}
			if diff := cmp.Diff(remainderOf(mg), r.Spec); diff != "" || len(r.OwnerReferences) > 0 {
				t.Errorf("%s: owners %v, -want +got\n%s", tc.reason, r.OwnerReferences, diff)
			}
			if told := strings.Join(w.told(), "\n"); !strings.Contains(told, "Warning EdgeRemainder") || !strings.Contains(told, tc.left) {
				t.Errorf("%s: events on the claim: %q", tc.reason, told)
			}
			// The finalizer may not have been removed: the next pass leaves no second one, and says nothing again.
			if !w.pass(mg) || len(w.told()) > 0 {
				t.Errorf("%s: it is left twice", tc.reason)
			}
		})
	}
}

// TestDeletionSeenLate has the provider start only when the minute is over: what can be cleaned up is not left to a remainder.
func TestDeletionSeenLate(t *testing.T) {
	w, mg := stands(t)
	deletedAt(now.Add(-time.Hour))(mg)
	if !w.pass(mg) {
		t.Fatal("it did not go")
	}
	w.wantNothingLeft()
	if w.remainder() != nil || len(w.told()) > 0 {
		t.Error("it left what it could have cleaned up")
	}
}

func newTidier(w *world) *tidier {
	return &tidier{
		cleaner: cleaner{control: w, system: w, reach: w.reach}, cache: w, clock: w.clock, log: logging.NewNopLogger(),
		claims: kit.NewClaimReporter(w, w, w.events),
	}
}

func (w *world) tidy() (reconcile.Result, error) {
	return newTidier(w).Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-dev-uid-1"}})
}

// leftBehind is a world in which a minute was not enough.
func leftBehind(t *testing.T, mess func(*world)) (*world, *v1alpha1.Edge) {
	t.Helper()
	w, mg := stands(t)
	mess(w)
	deletedAt(now)(mg)
	w.pass(mg)
	w.clock.SetTime(now.Add(time.Minute))
	if !w.pass(mg) {
		t.Fatal("it did not go")
	}
	r := w.remainder()
	r.CreationTimestamp = metav1.NewTime(now.Add(time.Minute))
	if err := w.Update(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	w.told()
	return w, mg
}

func TestRemainder(t *testing.T) {
	t.Run("RetriesUntilClean", func(t *testing.T) {
		w, _ := leftBehind(t, challenge)
		res, err := w.tidy()
		if err != nil || res.RequeueAfter != 5*time.Minute {
			t.Fatalf("got %+v, %v", res, err)
		}
		want := []string{"Challenge steading-edge/acme-dev-1-2-3 (finalizers: acme.cert-manager.io/finalizer)"}
		if diff := cmp.Diff(want, w.remainder().Status.Left); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		version := w.remainder().ResourceVersion
		w.clock.SetTime(now.Add(7 * time.Minute))
		if res, err = w.tidy(); err != nil || res.RequeueAfter != 9*time.Minute || w.remainder().ResourceVersion != version {
			t.Errorf("it waits longer, and writes nothing that it has written: got %+v, %v", res, err)
		}
		c := w.get(challengeKind, names.EdgeNamespace, "acme-dev-1-2-3")
		c.SetFinalizers(nil)
		_ = w.Update(context.Background(), c)
		_ = w.Delete(context.Background(), c)
		if _, err := w.tidy(); err != nil || w.remainder() != nil {
			t.Errorf("it is clean and the remainder stays: %v", err)
		}
		w.wantNothingLeft()
		if diff := cmp.Diff([]string{"Normal EdgeRemainder what exposed the environment is cleaned up"}, w.told()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if _, err := w.tidy(); err != nil {
			t.Errorf("a remainder that is gone: %v", err)
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		w, _ := leftBehind(t, func(w *world) { w.unreachable = true })
		if res, err := w.tidy(); err != nil || res.RequeueAfter == 0 || w.remainder() == nil {
			t.Fatalf("got %+v, %v", res, err)
		}
		w.unreachable = false
		if _, err := w.tidy(); err != nil || w.remainder() != nil {
			t.Fatalf("the cluster answers again: %v", err)
		}
		w.wantNothingLeft()
	})
	t.Run("Abandoned", func(t *testing.T) {
		w, _ := leftBehind(t, func(w *world) { w.unreachable = true })
		c := &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev"}}
		_ = w.Get(context.Background(), client.ObjectKeyFromObject(c), c)
		c.Annotations = map[string]string{names.AnnotationAbandon: "uid-1"}
		_ = w.Update(context.Background(), c)
		if _, err := w.tidy(); err != nil || w.remainder() != nil {
			t.Errorf("the operator gave the cluster up: %v", err)
		}
	})
	t.Run("ContextGone", func(t *testing.T) {
		w, mg := leftBehind(t, func(w *world) { w.unreachable = true })
		r := w.remainder()
		if err := w.Delete(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-edge"}}
		if err := w.Create(context.Background(), cluster); err != nil {
			t.Fatal(err)
		}
		mg.Spec.ForProvider.Context = "edge"
		w.pass(mg)
		if _, err := w.tidy(); err != nil || w.remainder() == nil {
			t.Fatalf("the context is still there: %v", err)
		}
		_ = w.Delete(context.Background(), cluster)
		if _, err := w.tidy(); err != nil || w.remainder() != nil {
			t.Errorf("the context is gone: %v", err)
		}
	})
	t.Run("Superseded", func(t *testing.T) {
		w, _ := leftBehind(t, challenge)
		if err := w.Create(context.Background(), edge(func(e *v1alpha1.Edge) { e.UID = "edge-3" })); err != nil {
			t.Fatal(err)
		}
		w.converge(edge())
		if _, err := w.tidy(); err != nil || w.remainder() != nil {
			t.Fatalf("the environment is exposed again: %v", err)
		}
		if !w.exists(dnsEndpointKind, names.EdgeNamespace, "acme-dev") || !w.exists(ingressKind, "acme-dev", "acme-edge") {
			t.Error("the remainder of the old Edge took the new one's objects")
		}
	})
}
