package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
)

// healthyTimeout is how long Crossplane may take to install a package.
const healthyTimeout = 2 * time.Minute

// runtimes tells Crossplane where the processes are that stand for the pods of
// its packages. With external runtimes it leaves that to somebody else, for
// every revision anew.
type runtimes struct {
	plane *Plane

	mu        sync.Mutex
	functions map[string]string // package name to endpoint
	providers map[string]bool
	watching  bool
}

func newRuntimes(p *Plane) *runtimes {
	return &runtimes{plane: p, functions: map[string]string{}, providers: map[string]bool{}}
}

// FunctionCertificates makes the certificate a function's server needs, as a
// Secret and as the files tls.crt, tls.key and ca.crt of the folder returned.
// The certificate is signed by Crossplane's own authority.
func (p *Plane) FunctionCertificates(ctx context.Context, function string) (string, error) {
	root := &corev1.Secret{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: CrossplaneNamespace, Name: crossplaneRootCA}, root); err != nil {
		return "", fmt.Errorf("cannot read the authority of crossplane: %w", err)
	}
	ca, err := parseAuthority(pair{cert: root.Data[corev1.TLSCertKey], key: root.Data[corev1.TLSPrivateKeyKey]})
	if err != nil {
		return "", err
	}
	cert, err := ca.server(function)
	if err != nil {
		return "", fmt.Errorf("cannot make the certificate of function %s: %w", function, err)
	}
	dir := p.file("functions/" + function)
	if err := cert.write(dir, ca.pem); err != nil {
		return "", fmt.Errorf("cannot write the certificate of function %s: %w", function, err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: CrossplaneNamespace, Name: serverSecret(function)}}
	data := map[string][]byte{corev1.TLSCertKey: cert.cert, corev1.TLSPrivateKeyKey: cert.key, "ca.crt": ca.pem}
	if err := p.client.Create(ctx, s); client.IgnoreAlreadyExists(err) != nil {
		return "", fmt.Errorf("cannot make the Secret of function %s: %w", function, err)
	}
	before := s.DeepCopy()
	s.Data = data
	if err := p.client.Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("cannot write the Secret of function %s: %w", function, err)
	}
	return dir, nil
}

// ConnectFunction makes Crossplane call an installed function at an address of
// this machine, now and for every revision to come, and waits until Crossplane
// finds the function healthy. FunctionCertificates comes first.
func (p *Plane) ConnectFunction(ctx context.Context, function, address string) error {
	p.runtimes.mu.Lock()
	p.runtimes.functions[function] = "dns:///" + address
	p.runtimes.mu.Unlock()
	if err := p.runtimes.connect(ctx); err != nil {
		return err
	}
	return p.waitHealthy(ctx, &xppkgv1.Function{}, function)
}

// ConnectProvider makes Crossplane take an installed provider for running, now
// and for every revision to come, and waits until its kinds are served.
func (p *Plane) ConnectProvider(ctx context.Context, provider string) error {
	p.runtimes.mu.Lock()
	p.runtimes.providers[provider] = true
	p.runtimes.mu.Unlock()
	if err := p.runtimes.connect(ctx); err != nil {
		return err
	}
	return p.waitHealthy(ctx, &xppkgv1.Provider{}, provider)
}

func (p *Plane) waitHealthy(ctx context.Context, pkg xppkgv1.Package, name string) error {
	err := p.waitFor(ctx, healthyTimeout, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKey{Name: name}, pkg); err != nil {
			return false, err
		}
		healthy, installed := pkg.GetCondition(xppkgv1.TypeHealthy), pkg.GetCondition(xppkgv1.TypeInstalled)
		if healthy.Status != corev1.ConditionTrue || installed.Status != corev1.ConditionTrue {
			return false, fmt.Errorf("installed: %s %s; healthy: %s %s", installed.Status, installed.Message, healthy.Status, healthy.Message)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("cannot install package %s: %w", name, err)
	}
	return nil
}

// connect all revisions that are there, and see to those that come.
func (r *runtimes) connect(ctx context.Context) error {
	if err := r.connectAll(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watching {
		r.watching = true
		r.plane.work(func(ctx context.Context) { r.follow(ctx, &xppkgv1.FunctionRevisionList{}) })
		r.plane.work(func(ctx context.Context) { r.follow(ctx, &xppkgv1.ProviderRevisionList{}) })
	}
	return nil
}

// follow revisions until the plane ends. A watch that breaks, as it does when
// the API server restarts, is begun again after a look at all of them.
func (r *runtimes) follow(ctx context.Context, list client.ObjectList) {
	for ctx.Err() == nil {
		if err := r.watch(ctx, list); err != nil && ctx.Err() == nil {
			r.plane.progress(fmt.Sprintf("cannot connect package runtimes, will try again: %v", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (r *runtimes) watch(ctx context.Context, list client.ObjectList) error {
	c, err := client.NewWithWatch(r.plane.config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	w, err := c.Watch(ctx, list)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			if !open {
				return nil
			}
			rev, ok := e.Object.(xppkgv1.PackageRevisionWithRuntime)
			if !ok {
				continue
			}
			if err := r.connectOne(ctx, rev); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
}

func (r *runtimes) connectAll(ctx context.Context) error {
	functions, providers := &xppkgv1.FunctionRevisionList{}, &xppkgv1.ProviderRevisionList{}
	for _, l := range []client.ObjectList{functions, providers} {
		if err := r.plane.client.List(ctx, l); err != nil {
			return fmt.Errorf("cannot list package revisions: %w", err)
		}
	}
	for i := range functions.Items {
		if err := r.connectOne(ctx, &functions.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for i := range providers.Items {
		if err := r.connectOne(ctx, &providers.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// connectOne does what Crossplane does for a runtime of its own, once it runs.
func (r *runtimes) connectOne(ctx context.Context, rev xppkgv1.PackageRevisionWithRuntime) error {
	pkg := rev.GetLabels()[xppkgv1.LabelParentPackage]
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.plane.client.Get(ctx, client.ObjectKeyFromObject(rev), rev); err != nil {
			return err
		}
		switch rev := rev.(type) {
		case *xppkgv1.FunctionRevision:
			return r.connectFunction(ctx, rev, pkg)
		case *xppkgv1.ProviderRevision:
			return r.connectProvider(ctx, rev, pkg)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot connect revision %s: %w", rev.GetName(), err)
	}
	return nil
}

func (r *runtimes) connectFunction(ctx context.Context, rev *xppkgv1.FunctionRevision, pkg string) error {
	r.mu.Lock()
	endpoint, ours := r.functions[pkg]
	r.mu.Unlock()
	if !ours {
		return nil
	}
	secret := serverSecret(pkg)
	if ptr.Deref(rev.Spec.TLSServerSecretName, "") != secret {
		before := rev.DeepCopy()
		rev.Spec.TLSServerSecretName = &secret
		if err := r.plane.client.Patch(ctx, rev, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	if rev.Status.Endpoint == endpoint && ptr.Deref(rev.Status.TLSServerSecretName, "") == secret && runtimeHealthy(rev) {
		return nil
	}
	before := rev.DeepCopy()
	rev.Status.Endpoint, rev.Status.TLSServerSecretName = endpoint, &secret
	rev.SetConditions(xppkgv1.RuntimeHealthy())
	return r.plane.client.Status().Patch(ctx, rev, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *runtimes) connectProvider(ctx context.Context, rev *xppkgv1.ProviderRevision, pkg string) error {
	r.mu.Lock()
	ours := r.providers[pkg]
	r.mu.Unlock()
	if !ours || runtimeHealthy(rev) {
		return nil
	}
	before := rev.DeepCopy()
	rev.SetConditions(xppkgv1.RuntimeHealthy())
	return r.plane.client.Status().Patch(ctx, rev, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func runtimeHealthy(rev xppkgv1.PackageRevision) bool {
	return rev.GetCondition(xppkgv1.TypeRuntimeHealthy).Status == corev1.ConditionTrue
}

func serverSecret(function string) string { return function + "-function-tls" }
