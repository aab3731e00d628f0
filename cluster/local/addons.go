package local

import (
	"context"
	"embed"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addons are what every cluster has besides Kubernetes' own processes.
//
//go:embed addons/*.yaml
var addons embed.FS

// addonTimeout is how long an addon may take until it runs.
const addonTimeout = 3 * time.Minute

// applyAddons and wait until they run.
func (p *Plane) applyAddons(ctx context.Context) error {
	p.progress("starting CoreDNS, the provisioner of volumes and what enforces network policies")
	all, err := p.readAddons()
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, all...); err != nil {
		return err
	}
	return p.waitRolledOut(ctx, all...)
}

// readAddons with what they are told of the plane filled in.
func (p *Plane) readAddons() ([]*unstructured.Unstructured, error) {
	files, err := addons.ReadDir("addons")
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, f := range files {
		b, err := addons.ReadFile("addons/" + f.Name())
		if err != nil {
			return nil, err
		}
		objects, err := parseObjects([]byte(p.filled(string(b))))
		if err != nil {
			return nil, fmt.Errorf("cannot read addon %s: %w", f.Name(), err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// waitRolledOut waits until the Deployments and DaemonSets among objects run as they are written.
func (p *Plane) waitRolledOut(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != "Deployment" && o.GetKind() != "DaemonSet" {
			continue
		}
		err := p.waitFor(ctx, addonTimeout, func(ctx context.Context) (bool, error) {
			return true, p.rolledOut(ctx, o.GetKind(), client.ObjectKeyFromObject(o))
		})
		if err != nil {
			return fmt.Errorf("cannot wait until %s %s runs: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

// rolledOut is nil if all pods are there, and ready.
func (p *Plane) rolledOut(ctx context.Context, kind string, key client.ObjectKey) error {
	if kind == "DaemonSet" {
		d := &appsv1.DaemonSet{}
		if err := p.client.Get(ctx, key, d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.DesiredNumberScheduled == 0 || s.NumberReady != s.DesiredNumberScheduled {
			return fmt.Errorf("%d of %d pods are ready", s.NumberReady, s.DesiredNumberScheduled)
		}
		return nil
	}
	d := &appsv1.Deployment{}
	if err := p.client.Get(ctx, key, d); err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("%d of %d pods are available", s.AvailableReplicas, *d.Spec.Replicas)
	}
	return nil
}
