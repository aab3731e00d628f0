package kit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/definitions"
)

// How often definitions are looked at, beside when they change, and how long to wait before they were first.
const (
	definitionsEvery      = 5 * time.Minute
	definitionsWrongEvery = 30 * time.Second
	definitionsFirstEvery = time.Second
)

// Definitions keeps looking whether the API server serves the kinds of a provider as this build of it knows them: at its start,
// when a definition changes, every five minutes, and every thirty seconds while something is wrong. It runs on every replica.
type Definitions struct {
	software string
	gv       schema.GroupVersion
	kinds    []definitions.Kind
	written  map[string][]string
	reader   client.Reader // uncached
	clock    clock.Clock
	log      logging.Logger
	record   event.Recorder
	// watch calls its argument when the definition of a name may have changed.
	watch func(ctx context.Context, changed func(name string)) error
	// nudge is for when a definition may have changed.
	nudge chan struct{}
	// looked is closed once all were looked at.
	looked chan struct{}

	mu    sync.Mutex
	found map[string]definitions.Finding // by kind
	holds map[string]*hold               // by kind
}

// configKinds are written, or read for what an operator decides, by every controller of a provider.
var configKinds = []string{"ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage"}

// NewDefinitions returns the definitions of all kinds of a group and version, for the provider of a name, and has the manager
// look at them. Written are the kinds that a controller writes besides its own, by its own.
func NewDefinitions(mgr manager.Manager, software string, gv schema.GroupVersion, written map[string][]string, o Options) (*Definitions, error) {
	s := runtime.NewScheme()
	if err := extv1.AddToScheme(s); err != nil {
		return nil, errors.Wrap(err, "cannot build the scheme of definitions")
	}
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: s, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that reads definitions")
	}
	d := newDefinitions(software, gv, written, c, o)
	d.watch = watchDefinitions(mgr.GetCache())
	return d, errors.Wrap(mgr.Add(d), "cannot add the look at definitions to the manager")
}

func newDefinitions(software string, gv schema.GroupVersion, written map[string][]string, r client.Reader, o Options) *Definitions {
	d := &Definitions{
		software: software, gv: gv, written: written, reader: r, clock: o.Clock, log: o.Log.WithValues("controller", "definitions"), record: o.Record,
		nudge: make(chan struct{}, 1), looked: make(chan struct{}),
		found: map[string]definitions.Finding{}, holds: map[string]*hold{},
	}
	for _, k := range definitions.All() {
		if k.GroupVersion() == gv {
			d.kinds = append(d.kinds, k)
		}
	}
	return d
}

// NeedLeaderElection is false: a replica that comes to lead has looked already.
func (d *Definitions) NeedLeaderElection() bool { return false }

// Start looking, until ctx is done.
func (d *Definitions) Start(ctx context.Context) error {
	if d.watch != nil {
		if err := d.watch(ctx, d.changed); err != nil {
			return errors.Wrap(err, "cannot watch definitions")
		}
	}
	for {
		t := d.clock.NewTimer(d.look(ctx))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-d.nudge:
			t.Stop()
		case <-t.C():
		}
	}
}

// changed is told of every definition that may have changed.
func (d *Definitions) changed(name string) {
	if !slices.ContainsFunc(d.kinds, func(k definitions.Kind) bool { return k.Definition == name }) {
		return
	}
	select {
	case d.nudge <- struct{}{}:
	default: // It will be looked anyway.
	}
}

// look at all definitions, let go who is held no longer, and return when to look again.
func (d *Definitions) look(ctx context.Context) time.Duration {
	unread, forbidden := 0, false
	for _, k := range d.kinds {
		crd := &extv1.CustomResourceDefinition{}
		err := d.reader.Get(ctx, client.ObjectKey{Name: k.Definition}, crd)
		switch {
		case kerrors.IsNotFound(err):
			d.find(k.Find(nil))
		case err != nil:
			// What was found before stays true until the contrary is known.
			d.log.Info("Cannot compare a definition with the one this was built with", "definition", k.Definition, "error", Clean(err))
			unread++
			forbidden = forbidden || kerrors.IsForbidden(err)
		default:
			d.find(k.Find(crd))
		}
	}
	wrong := d.tell()
	switch {
	case unread > 0 && !forbidden && !d.lookedOnce():
		// Whoever waits for the first look could not reach the API server either.
		return definitionsFirstEvery
	case unread > 0, wrong:
		d.letStart()
		return definitionsWrongEvery
	default:
		d.letStart()
		return definitionsEvery
	}
}

func (d *Definitions) find(f definitions.Finding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found[f.Kind.Kind] = f
}

// tell the holds, and report whether anything is wrong.
func (d *Definitions) tell() (wrong bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.found {
		wrong = wrong || !f.Current()
	}
	for _, h := range d.holds {
		h.judge(d.judge(h.writes))
	}
	return wrong
}

// judge what was found of kinds. The lock is held.
func (d *Definitions) judge(kinds []definitions.Kind) definitions.Verdict {
	found := make([]definitions.Finding, 0, len(kinds))
	for _, k := range kinds {
		if f, ok := d.found[k.Kind]; ok {
			found = append(found, f)
		}
	}
	return definitions.Judge(d.software, found...)
}

// hold of the controller of a kind. It is the same one for the same kind.
func (d *Definitions) hold(kind string) *hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, ok := d.holds[kind]
	if !ok {
		controller := strings.ToLower(kind)
		// A config's own kind is one of those that all write, and is said once.
		others := slices.DeleteFunc(slices.Concat(d.written[kind], configKinds), func(k string) bool { return k == kind })
		h = &hold{
			writes: definitions.Of(d.gv, append([]string{kind}, others...)...),
			log:    d.log.WithValues("held", controller), record: d.record.WithAnnotations("controller", controller),
			clock: d.clock, looked: d.looked, seen: map[reconcile.Request]struct{}{},
		}
		h.verdict = d.judge(h.writes)
		d.holds[kind] = h
	}
	return h
}

func (d *Definitions) lookedOnce() bool {
	select {
	case <-d.looked:
		return true
	default:
		return false
	}
}

func (d *Definitions) letStart() {
	if !d.lookedOnce() {
		close(d.looked)
	}
}

// watchDefinitions by their metadata.
func watchDefinitions(c cache.Cache) func(ctx context.Context, changed func(name string)) error {
	return func(ctx context.Context, changed func(name string)) error {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		informer, err := c.GetInformer(ctx, m, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		tell := func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if o, ok := obj.(client.Object); ok {
				changed(o.GetName())
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    tell,
			UpdateFunc: func(_, now any) { tell(now) },
			DeleteFunc: tell,
		})
		return err
	}
}
