package release

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// starvingAgain is how soon it is asked again why a StatefulSet makes no pods. Nothing that is watched changes when it is
// refused one.
const starvingAgain = 5 * time.Second

// starving are the StatefulSets that make no pods: they have fewer than they should and none that they would wait for first.
func (w workloads) starving() []appsv1.StatefulSet {
	var out []appsv1.StatefulSet
	for _, s := range w.statefulSets {
		if s.Spec.Replicas != nil && s.Status.Replicas < *s.Spec.Replicas && s.Status.ReadyReplicas == s.Status.Replicas {
			out = append(out, s)
		}
	}
	return out
}

// starved finds out why StatefulSets make no pods. Unlike a ReplicaSet's, their status does not say: only their events do.
func (e *external) starved(ctx context.Context, p v1alpha1.ReleaseParameters, w workloads, since time.Time, r rollout) (rollout, error) {
	for _, s := range w.starving() {
		message, err := e.helm.refusal(ctx, p, s.UID, since)
		if err != nil {
			return r, err
		}
		if message != "" {
			return refusedPod(message), nil
		}
		r.settled = starvingAgain
	}
	return r, nil
}

// deployerRefusal is the last that the controller of an object said, since then, about pods that it could not make; empty
// when it said nothing. It reads as the deployer of the namespace.
func deployerRefusal(ctx context.Context, t *target.Target, namespace string, of types.UID, since time.Time) (string, error) {
	cfg, err := t.Deployer(ctx, namespace)
	if err != nil {
		return "", err
	}
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", errors.Wrap(err, "cannot make the deployer's client")
	}
	return readRefusal(ctx, cs.CoreV1().Events(namespace), of, since)
}

func readRefusal(ctx context.Context, events corev1.EventInterface, of types.UID, since time.Time) (string, error) {
	found, err := events.List(ctx, metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(of), "reason": "FailedCreate"}.String()})
	if err != nil {
		return "", errors.Wrap(err, "cannot list the events of a StatefulSet")
	}
	message, latest := "", since
	for i := range found.Items {
		if at := found.Items[i].LastTimestamp.Time; !at.Before(latest) {
			message, latest = found.Items[i].Message, at
		}
	}
	// What the controller did is told by the condition already.
	if _, cause, ok := strings.Cut(message, " failed error: "); ok {
		message = cause
	}
	return message, nil
}
