package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Tenant is a Tenant claim.
func Tenant(name string, spec steading.TenantSpec) *steading.Tenant {
	return &steading.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: name}, Spec: spec}
}

// Environment is an Environment claim that asks to run at version 1.4.2, with 8 CPU, 20Gi and 40Gi.
func Environment(tenant, name string) *steading.Environment {
	return &steading.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		Spec: steading.EnvironmentSpec{
			Type: steading.TypeRuntime, Version: "1.4.2", State: steading.StateRunning,
			Size: steading.MustResources("8", "20Gi", "40Gi"),
		},
	}
}

// NewTenant makes a tenant and waits until it takes environments. It is removed with all it has when the test is over.
func (s *Suite) NewTenant(t *testing.T, name string, spec steading.TenantSpec) *steading.Tenant {
	t.Helper()
	if spec.DeletionPolicy == "" {
		spec.DeletionPolicy = steading.DeletionDelete
	}
	x := Tenant(name, spec)
	s.Create(t, x)
	Eventually(t, "tenant "+name+" ready", func(ctx context.Context) error {
		if err := s.Reload(ctx, x); err != nil {
			return err
		}
		if x.Status.Phase != steading.TenantReady {
			return fmt.Errorf("phase %s, conditions %+v", x.Status.Phase, x.Status.Conditions)
		}
		return nil
	})
	return x
}

// WaitFor waits until an environment is as check wants it, and returns it.
func (s *Suite) WaitFor(t *testing.T, e *steading.Environment, what string, check func(*steading.Environment) bool) *steading.Environment {
	t.Helper()
	Eventually(t, "environment "+e.Name+" "+what, func(ctx context.Context) error {
		if err := s.Reload(ctx, e); err != nil {
			return err
		}
		if !check(e) {
			return errors.New(Describe(e))
		}
		return nil
	})
	return e
}

// Ready reports whether Crossplane finds the environment ready as it is written now.
func Ready(e *steading.Environment) bool {
	c := e.Status.GetCondition("Ready")
	return c.Status == corev1.ConditionTrue && c.ObservedGeneration == e.Generation
}

// Describe an environment in a line, for a failure.
func Describe(e *steading.Environment) string {
	return fmt.Sprintf("phase %s, power %s, version %s, message %q, conditions %+v", e.Status.Phase, e.Status.Power, e.Status.DeployedVersion, e.Status.Message, e.Status.Conditions)
}

// Condition of an environment by type.
func Condition(e *steading.Environment, kind string) (status, reason, message string) {
	for _, c := range e.Status.Conditions {
		if string(c.Type) == kind {
			return string(c.Status), string(c.Reason), c.Message
		}
	}
	return "", "", ""
}
