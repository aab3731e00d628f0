package child

import (
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// sampleUUID stands for that of a registration.
const sampleUUID = "00000000-0000-4000-8000-000000000000"

// Check whether runners can be made of a config in a namespace with these labels. The error is a [RefusedError] that names the
// field which is wrong. Pods are held to the Pod Security Standard that the labels enforce, baseline when they enforce none.
func Check(c v1alpha1.RunnerConfig, namespaceLabels map[string]string) error {
	sample := &v1alpha1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{Name: "sample"}}
	sample.Spec.ForProvider.Config = c
	o, err := Of(sample, sampleUUID)
	if err != nil {
		return err
	}
	j, ok := o.(*batchv1.Job)
	if !ok {
		return nil
	}
	return allowed(j, namespaceLabels)
}

// allowed pods meet the Pod Security Standard of their namespace. A Job is let in whatever its pods are; they are refused one
// by one, where nobody looks.
func allowed(j *batchv1.Job, namespaceLabels map[string]string) error {
	baseline := psa.LevelVersion{Level: psa.LevelBaseline, Version: psa.LatestVersion()}
	// What the labels say wrongly admission does not heed either, and takes for the strictest.
	p, _ := psa.PolicyToEvaluate(namespaceLabels, psa.Policy{Enforce: baseline, Audit: baseline, Warn: baseline})
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return errors.Wrap(err, "cannot evaluate Pod Security Standards")
	}
	t := j.Spec.Template
	r := policy.AggregateCheckResults(e.EvaluatePod(p.Enforce, &t.ObjectMeta, &t.Spec))
	if r.Allowed {
		return nil
	}
	return refused(podField, "the job namespace enforces Pod Security %s, which it does not meet: %s", p.Enforce.Level, strings.TrimSpace(r.ForbiddenDetail()))
}
