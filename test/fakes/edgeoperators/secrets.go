package edgeoperators

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var (
	externalSecret = schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"}
	secretStore    = schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "SecretStore"}
)

// ExternalSecrets stands in for the External Secrets operator: for each ExternalSecret that extracts a key it writes the
// Secret that is asked for, if the SecretStore is there.
type ExternalSecrets struct {
	*operator

	mu   sync.Mutex
	keys map[string]map[string]string
}

// StartExternalSecrets runs one on a control plane until ctx is done.
func StartExternalSecrets(ctx context.Context, cfg *rest.Config) (*ExternalSecrets, error) {
	o, err := newOperator(cfg, externalSecret, secretStore)
	if err != nil {
		return nil, fmt.Errorf("cannot start the External Secrets operator: %w", err)
	}
	e := &ExternalSecrets{operator: o, keys: map[string]map[string]string{}}
	o.step = e.sync
	go o.run(ctx)
	return e, nil
}

// Hold fields under a key of every store.
func (e *ExternalSecrets) Hold(key string, fields map[string]string) {
	e.mu.Lock()
	e.keys[key] = maps.Clone(fields)
	e.mu.Unlock()
	e.nudge()
}

func (e *ExternalSecrets) sync(ctx context.Context) error {
	var errs []error
	for _, u := range e.all(ctx, externalSecret, "") {
		fetched := e.fetch(ctx, &u)
		errs = append(errs, e.say(ctx, &u, fetched))
	}
	return errors.Join(errs...)
}

// fetch what an ExternalSecret asks for into its Secret.
func (e *ExternalSecrets) fetch(ctx context.Context, u *unstructured.Unstructured) error {
	store := &unstructured.Unstructured{}
	store.SetGroupVersionKind(secretStore)
	name, _, _ := unstructured.NestedString(u.Object, "spec", "secretStoreRef", "name")
	if err := e.Get(ctx, client.ObjectKey{Namespace: u.GetNamespace(), Name: name}, store); err != nil {
		return fmt.Errorf("could not get SecretStore %q: %w", name, err)
	}
	fields, err := e.extract(u)
	if err != nil {
		return err
	}
	target, _, _ := unstructured.NestedString(u.Object, "spec", "target", "name")
	labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "target", "template", "metadata", "labels")
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: target}}
	_, err = controllerutil.CreateOrUpdate(ctx, e, s, func() error {
		s.Labels, s.Data = labels, map[string][]byte{}
		for k, v := range fields {
			s.Data[k] = []byte(v)
		}
		return controllerutil.SetControllerReference(u, s, e.Scheme())
	})
	return err
}

// extract the fields of the one key.
func (e *ExternalSecrets) extract(u *unstructured.Unstructured) (map[string]string, error) {
	from, _, _ := unstructured.NestedSlice(u.Object, "spec", "dataFrom")
	if len(from) != 1 {
		return nil, fmt.Errorf("dataFrom has %d entries, and one is understood", len(from))
	}
	first, _ := from[0].(map[string]any)
	key, _, _ := unstructured.NestedString(first, "extract", "key")
	e.mu.Lock()
	defer e.mu.Unlock()
	fields, ok := e.keys[key]
	if !ok {
		return nil, fmt.Errorf("there is no key %s", key)
	}
	return fields, nil
}

// say on an ExternalSecret what came of it, unless that stands there.
func (e *ExternalSecrets) say(ctx context.Context, u *unstructured.Unstructured, fetched error) error {
	status, reason, message := "True", "SecretSynced", "secret synced"
	if fetched != nil {
		status, reason, message = "False", "SecretSyncedError", fetched.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if len(conditions) == 1 {
		if c, ok := conditions[0].(map[string]any); ok && c["status"] == status && c["message"] == message {
			return nil
		}
	}
	err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}}, "status", "conditions")
	return errors.Join(err, client.IgnoreNotFound(e.Status().Update(ctx, u)))
}
