package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
)

// healthyTimeout is how long Crossplane may take to install a package.
const healthyTimeout = 4 * time.Minute

// runtimes tells Crossplane where the processes are that stand for the pods of
// its packages. With external runtimes it leaves that to somebody else, for
// every revision anew.
type runtimes struct {
	plane *Plane

	mu           sync.Mutex
	endpoints    map[string]string // of packages by name; a provider has none
	certificates map[string]string // folders by name of the package
	watching     bool
}

func newRuntimes(p *Plane) *runtimes {
	return &runtimes{plane: p, endpoints: map[string]string{}, certificates: map[string]string{}}
}

// PackageCertificates is the folder with the files tls.crt, tls.key and ca.crt
// which the process of a function or provider serves with on 127.0.0.1. The
// certificate is signed by Crossplane's own authority; Crossplane finds it in a
// Secret of its namespace.
func (p *Plane) PackageCertificates(ctx context.Context, pkg string) (string, error) {
	p.runtimes.mu.Lock()
	defer p.runtimes.mu.Unlock()
	if dir, ok := p.runtimes.certificates[pkg]; ok {
		return dir, nil
	}
	dir, err := p.runtimes.issue(ctx, pkg)
	if err != nil {
		return "", fmt.Errorf("cannot make the certificate of package %s: %w", pkg, err)
	}
	p.runtimes.certificates[pkg] = dir
	return dir, nil
}

// ConnectFunction makes Crossplane call an installed function at an address of
// this machine, now and for every revision to come, and waits until Crossplane
// finds the function healthy.
func (p *Plane) ConnectFunction(ctx context.Context, function, address string) error {
	return p.connectPackage(ctx, &xppkgv1.Function{}, function, "dns:///"+address)
}

// ConnectProvider makes Crossplane take an installed provider for running, now
// and for every revision to come, and waits until Crossplane finds it healthy.
func (p *Plane) ConnectProvider(ctx context.Context, provider string) error {
	return p.connectPackage(ctx, &xppkgv1.Provider{}, provider, "")
}

func (p *Plane) connectPackage(ctx context.Context, kind xppkgv1.Package, name, endpoint string) error {
	if _, err := p.PackageCertificates(ctx, name); err != nil {
		return err
	}
	p.runtimes.mu.Lock()
	p.runtimes.endpoints[name] = endpoint
	p.runtimes.mu.Unlock()
	if err := p.runtimes.connect(ctx); err != nil {
		return err
	}
	return p.waitHealthy(ctx, kind, name)
}

func (r *runtimes) issue(ctx context.Context, pkg string) (string, error) {
	root := &corev1.Secret{}
	if err := r.plane.client.Get(ctx, client.ObjectKey{Namespace: CrossplaneNamespace, Name: crossplaneRootCA}, root); err != nil {
		return "", err
	}
	ca, err := parseAuthority(pair{cert: root.Data[corev1.TLSCertKey], key: root.Data[corev1.TLSPrivateKeyKey]})
	if err != nil {
		return "", err
	}
	cert, err := ca.server(pkg)
	if err != nil {
		return "", err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: CrossplaneNamespace, Name: *serverSecret(pkg)},
		Data:       map[string][]byte{corev1.TLSCertKey: cert.cert, corev1.TLSPrivateKeyKey: cert.key, "ca.crt": ca.pem},
	}
	if err := r.plane.client.Create(ctx, s); err != nil {
		return "", err
	}
	dir := r.plane.file("packages/" + pkg)
	return dir, cert.write(dir, ca.pem)
}

func (p *Plane) waitHealthy(ctx context.Context, pkg xppkgv1.Package, name string) error {
	return p.WaitPackage(ctx, pkg, name, "")
}

// WaitPackage waits until Crossplane finds a package healthy, and installed from
// a source if one is given.
func (p *Plane) WaitPackage(ctx context.Context, pkg xppkgv1.Package, name, source string) error {
	err := p.waitFor(ctx, healthyTimeout, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKey{Name: name}, pkg); err != nil {
			return false, err
		}
		if source != "" && (pkg.GetSource() != source || pkg.GetCurrentIdentifier() != source) {
			return false, fmt.Errorf("it is asked for from %s and installed from %s, not %s", pkg.GetSource(), pkg.GetCurrentIdentifier(), source)
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
		r.plane.work(ctx, func(ctx context.Context) { r.follow(ctx, &xppkgv1.FunctionRevisionList{}) })
		r.plane.work(ctx, func(ctx context.Context) { r.follow(ctx, &xppkgv1.ProviderRevisionList{}) })
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
	r.mu.Lock()
	endpoint, ours := r.endpoints[pkg]
	r.mu.Unlock()
	if !ours {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.plane.client.Get(ctx, client.ObjectKeyFromObject(rev), rev); err != nil {
			return err
		}
		return r.patch(ctx, rev, serverSecret(pkg), endpoint)
	})
	if err != nil {
		return fmt.Errorf("cannot connect revision %s: %w", rev.GetName(), err)
	}
	return nil
}

// patch what differs. Conditions are a list, so that somebody else's would be
// lost without the lock.
func (r *runtimes) patch(ctx context.Context, rev xppkgv1.PackageRevisionWithRuntime, secret *string, endpoint string) error {
	lock := client.MergeFromWithOptimisticLock{}
	if !ptr.Equal(rev.GetTLSServerSecretName(), secret) {
		before := rev.DeepCopyObject().(client.Object) //nolint:forcetypeassert // A copy of the same type.
		rev.SetTLSServerSecretName(secret)
		if err := r.plane.client.Patch(ctx, rev, client.MergeFromWithOptions(before, lock)); err != nil {
			return err
		}
	}
	before := rev.DeepCopyObject().(client.Object) //nolint:forcetypeassert // A copy of the same type.
	rev.SetObservedTLSServerSecretName(secret)
	if f, ok := rev.(*xppkgv1.FunctionRevision); ok {
		f.Status.Endpoint = endpoint
	}
	if rev.GetCondition(xppkgv1.TypeRuntimeHealthy).Status != corev1.ConditionTrue {
		rev.SetConditions(xppkgv1.RuntimeHealthy())
	}
	if equality.Semantic.DeepEqual(before, rev) {
		return nil
	}
	return r.plane.client.Status().Patch(ctx, rev, client.MergeFromWithOptions(before, lock))
}

func serverSecret(pkg string) *string {
	return xppkgv1.GetSecretNameWithSuffix(pkg, xppkgv1.TLSServerSecretNameSuffix)
}
