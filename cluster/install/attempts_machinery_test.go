package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/test/harness/try"
)

// typed does what a controller does that reads an object into its type and writes all of it back.
func typed(ctx context.Context, c client.Client) error {
	b := &runtimev1.Boundary{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "steading-system", Name: "acme-dev"}, b); err != nil {
		return err
	}
	b.SetAnnotations(map[string]string{"crossplane.io/external-name": "acme-dev"})
	return c.Update(ctx, b)
}

func attemptsOnMachinery() map[string]map[string]attempt {
	const (
		composite = "XEnvironment.steading.dev/v1alpha1 dev-x"
		broken    = "XEnvironment.steading.dev/v1alpha1 broken-x"
		boundary  = "Boundary.runtime.steading.dev/v1alpha1 steading-system/acme-dev"
		cracked   = "Boundary.runtime.steading.dev/v1alpha1 steading-system/acme-broken"
		ledger    = "Ledger.runtime.steading.dev/v1alpha1 steading-system/acme"
		torn      = "Ledger.runtime.steading.dev/v1alpha1 steading-system/broken"
		event     = "UsageEvent.runtime.steading.dev/v1alpha1 steading-system/acme-dev-provisioned"
		more      = "spec: {forProvider: {caps: {cpu: '64'}}}"
		free      = "metadata: {finalizers: null}"
	)
	newComposite := "apiVersion: steading.dev/v1alpha1\nkind: XEnvironment\nmetadata: {name: mine}\n" +
		"spec: {type: runtime, claimRef: {apiVersion: steading.dev/v1alpha1, kind: Environment, namespace: tenant-victim, name: dev}}"
	newBoundary := "apiVersion: runtime.steading.dev/v1alpha1\nkind: Boundary\nmetadata: {name: mine, namespace: steading-system}\n" +
		"spec: {forProvider: {identity: {tenant: acme, environment: mine, uid: x}, claim: {namespace: tenant-acme, name: mine}, context: platform, namespace: kube-system, caps: {cpu: '1', memory: 1Gi, storage: 1Gi}}}"
	newLedger := "apiVersion: runtime.steading.dev/v1alpha1\nkind: Ledger\nmetadata: {name: mine, namespace: steading-system}"
	newEvent := "apiVersion: runtime.steading.dev/v1alpha1\nkind: UsageEvent\nmetadata: {name: mine, namespace: steading-system}\n" +
		"spec: {identity: {tenant: acme, environment: dev, uid: x}, transition: Deleted, time: '2026-01-01T00:00:00Z'}"
	return map[string]map[string]attempt{
		"refuse-changing-composites": {
			"crossplane makes one":              {reason: "It does.", as: crossplane, do: create(newComposite)},
			"crossplane deletes one":            {reason: "It does, for the claim.", as: crossplane, do: remove(composite)},
			"crossplane writes its status":      {reason: "It does.", as: crossplane, do: changeStatus(composite, "status: {phase: Running}")},
			"an operator breaks the glass":      {reason: "By setting the annotation.", as: operator, do: change(composite, "metadata: {annotations: {steading.dev/break-glass: 'ticket 1'}}")},
			"an operator behind broken glass":   {reason: "Then he may.", as: operator, do: remove(broken)},
			"somebody makes one":                {reason: "It says itself whose it is.", as: argocd, do: create(newComposite), want: "belongs to Crossplane: change or delete the claim it serves"},
			"somebody changes one":              {reason: "As above.", as: argocd, do: change(composite, "spec: {version: 9.9.9}"), want: "XEnvironment dev-x belongs to Crossplane"},
			"somebody changes a status":         {reason: "It becomes the claim's.", as: argocd, do: changeStatus(composite, "status: {phase: Running}"), want: "XEnvironment dev-x belongs to Crossplane"},
			"somebody deletes one":              {reason: "The claim does.", as: argocd, do: remove(composite), want: "XEnvironment dev-x belongs to Crossplane"},
			"somebody behind broken glass":      {reason: "He is no operator.", as: argocd, do: remove(broken), want: "XEnvironment broken-x belongs to Crossplane"},
			"an operator without broken glass":  {reason: "It has to be said.", as: operator, do: remove(composite), want: "an operator may go on once it carries the annotation steading.dev/break-glass"},
			"somebody breaks the glass himself": {reason: "He is no operator.", as: argocd, do: change(composite, "metadata: {annotations: {steading.dev/break-glass: x}}"), want: "belongs to Crossplane"},
		},
		"refuse-changing-managed-resources": {
			"crossplane makes one":                {reason: "It does.", as: crossplane, do: create(newBoundary)},
			"crossplane changes one":              {reason: "It does.", as: crossplane, do: change(boundary, more)},
			"the provider keeps finalizers":       {reason: "It does.", as: provider, do: replace(boundary, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })},
			"the provider writes status":          {reason: "It does.", as: provider, do: replaceStatus(boundary, "acme-dev")},
			"the provider writes all of it back":  {reason: "A typed client changes nothing by the way.", as: provider, do: typed},
			"the garbage collector lets go":       {reason: "It ends foreground deletion by a finalizer.", as: garbageCollector, do: change(boundary, free)},
			"an operator breaks the glass":        {reason: "By setting the annotation.", as: operator, do: change(boundary, "metadata: {annotations: {steading.dev/break-glass: 'ticket 1'}}")},
			"an operator behind broken glass":     {reason: "Then he may.", as: operator, do: change(cracked, more)},
			"an operator mends the glass":         {reason: "Taking the annotation away.", as: operator, do: change(cracked, "metadata: {annotations: {steading.dev/break-glass: null}}")},
			"the provider raises a cap":           {reason: "It reports; it does not decide.", as: provider, do: replace(boundary, raise), want: "Boundary acme-dev: its provider may change its metadata and status only"},
			"somebody makes one":                  {reason: "It would make a namespace of his choice.", as: argocd, do: create(newBoundary), want: "is composed from a claim: change the claim"},
			"somebody changes one":                {reason: "The claim says what is to be.", as: argocd, do: change(boundary, more), want: "Boundary acme-dev is composed from a claim"},
			"somebody drops its finalizers":       {reason: "What it stands for would stay behind.", as: argocd, do: change(boundary, free), want: "Boundary acme-dev is composed from a claim"},
			"somebody writes its status":          {reason: "A grant stands there.", as: argocd, do: changeStatus(boundary, "status: {atProvider: {namespace: x}}"), want: "Boundary acme-dev is composed from a claim"},
			"somebody behind broken glass":        {reason: "He is no operator.", as: argocd, do: change(cracked, more), want: "is composed from a claim"},
			"an operator without broken glass":    {reason: "It has to be said.", as: operator, do: change(boundary, more), want: "once it carries the annotation steading.dev/break-glass"},
			"an administrator too":                {reason: "He is an operator.", as: admin, do: change(boundary, free), want: "steading.dev/break-glass"},
			"the garbage collector changes a cap": {reason: "It has no business there.", as: garbageCollector, do: change(boundary, more), want: "is composed from a claim"},
		},
		"refuse-deleting-managed-resources": {
			"crossplane":                       {reason: "It deletes what is not desired any more.", as: crossplane, do: remove(boundary)},
			"the garbage collector":            {reason: "It deletes them when the composite is gone.", as: garbageCollector, do: remove(boundary)},
			"the namespace controller":         {reason: "When steading-system goes.", as: namespaceController, do: remove(boundary)},
			"an operator behind broken glass":  {reason: "Then he may.", as: operator, do: remove(cracked)},
			"an operator without broken glass": {reason: "It has to be said.", as: operator, do: remove(boundary), want: "or first set the annotation steading.dev/break-glass on it, with the reason as value"},
			"an administrator too":             {reason: "He is an operator.", as: admin, do: remove(boundary), want: "Boundary acme-dev goes with the claim it serves: delete that"},
			"somebody":                         {reason: "All that runs would go.", as: argocd, do: remove(boundary), want: "Boundary acme-dev goes with the claim it serves: delete that"},
			"somebody behind broken glass":     {reason: "He is no operator.", as: argocd, do: remove(cracked), want: "goes with the claim it serves"},
		},
		"refuse-changing-usage-events": {
			"the provider records":     {reason: "It does.", as: provider, do: create(newEvent)},
			"an operator corrects":     {reason: "Bills are corrected by people.", as: operator, do: remove(event)},
			"an operator labels":       {reason: "It changes no fact.", as: operator, do: change(event, "metadata: {labels: {billed: '2026-01'}}")},
			"somebody records":         {reason: "Nobody else knows.", as: argocd, do: create(newEvent), want: "usage events are recorded by provider-runtime; nobody else may write one"},
			"somebody deletes":         {reason: "It is what is billed.", as: argocd, do: remove(event), want: "UsageEvent acme-dev-provisioned is a record of what was used: only an operator may change or delete it"},
			"somebody labels":          {reason: "It is not his.", as: argocd, do: change(event, "metadata: {labels: {billed: never}}"), want: "only an operator"},
			"crossplane deletes":       {reason: "It has no business there.", as: crossplane, do: remove(event), want: "only an operator"},
			"the namespace controller": {reason: "Not even with steading-system.", as: namespaceController, do: remove(event), want: "only an operator"},
		},
		"refuse-writing-ledgers": {
			"the provider opens one":             {reason: "It does.", as: provider, do: create(newLedger)},
			"the provider writes one":            {reason: "It does.", as: provider, do: replace(ledger, setLabel("a", "b"))},
			"the provider closes one":            {reason: "It does.", as: provider, do: remove(ledger)},
			"the garbage collector":              {reason: "When the Home is gone.", as: garbageCollector, do: remove(ledger)},
			"an operator breaks the glass":       {reason: "By setting the annotation.", as: operator, do: change(ledger, "metadata: {annotations: {steading.dev/break-glass: 'ticket 1'}}")},
			"an operator behind broken glass":    {reason: "Then he may.", as: operator, do: change(torn, "entries: []")},
			"somebody opens one":                 {reason: "It would grant what he likes.", as: argocd, do: create(newLedger), want: "is written by provider-runtime alone"},
			"somebody writes one":                {reason: "As above.", as: argocd, do: change(ledger, "entries: []"), want: "Ledger acme is written by provider-runtime alone: change the Tenant's quota or its environments"},
			"somebody deletes one":               {reason: "All grants would be decided again.", as: argocd, do: remove(ledger), want: "Ledger acme"},
			"an operator without broken glass":   {reason: "It has to be said.", as: operator, do: remove(ledger), want: "once it carries the annotation steading.dev/break-glass"},
			"crossplane has no business there":   {reason: "It composes none.", as: crossplane, do: change(ledger, "entries: []"), want: "Ledger acme"},
			"the garbage collector writes grant": {reason: "It may delete only.", as: garbageCollector, do: change(ledger, entry), want: "Ledger acme"},
		},
	}
}

const entry = "entries: [{uid: x, placement: acme-dev, grant: {}}]"

// setLabel edits an object for replace.
func setLabel(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		l := o.GetLabels()
		if l == nil {
			l = map[string]string{}
		}
		l[key] = value
		o.SetLabels(l)
	}
}

// raise edits a Boundary for replace.
func raise(o *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(o.Object, "64", "spec", "forProvider", "caps", "cpu") // It fails on what is no Boundary, which the test then shows.
}

// replaceStatus of a Boundary, as its controller does.
func replaceStatus(id, namespace string) try.Deed {
	return func(ctx context.Context, c client.Client) error {
		o := try.Object(id)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, namespace, "status", "atProvider", "namespace"); err != nil {
			return err
		}
		return c.Status().Update(ctx, o)
	}
}
