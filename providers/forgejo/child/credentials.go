package child

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
)

// Keys of the Secret, which are files to the runner. A pod has the token, and the CA bundle if there is one; a machine has no
// arguments, and so has all.
const (
	tokenKey  = "token"
	urlKey    = "url"
	uuidKey   = "uuid"
	labelKey  = "label"
	handleKey = "handle"
	caKey     = "ca.crt"
)

// Credentials is the Secret that a runner is given. It says which registration it is of, so that one that was made before a
// crash is known again.
func Credentials(mg *v1alpha1.RunnerInstance, r Registration) *corev1.Secret {
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metadata(mg, CredentialsKey(mg)),
		Immutable:  ptr.To(true),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{tokenKey: []byte(r.Token)},
	}
	s.Annotations[names.AnnotationRegistration] = strconv.FormatInt(r.ID, 10)
	s.Annotations[names.AnnotationRegistrationUUID] = r.UUID
	c := mg.Spec.ForProvider.Config
	if len(c.Forgejo.CABundle) > 0 {
		s.Data[caKey] = c.Forgejo.CABundle
	}
	if c.VM != nil {
		s.Data[urlKey], s.Data[uuidKey] = []byte(c.Forgejo.URL), []byte(r.UUID)
		s.Data[labelKey] = []byte(strings.Join(labels(c), "\n") + "\n")
		if h := Handle(mg); h != "" {
			s.Data[handleKey] = []byte(h)
		}
	}
	return s
}

// RegistrationOf is the registration that a Secret of [Credentials] is of, without its token; false for any other Secret.
func RegistrationOf(s *corev1.Secret) (v1alpha1.Registration, bool) {
	id, err := strconv.ParseInt(s.Annotations[names.AnnotationRegistration], 10, 64)
	r := v1alpha1.Registration{ID: id, UUID: s.Annotations[names.AnnotationRegistrationUUID]}
	return r, err == nil && r.UUID != "" && len(s.Data[tokenKey]) > 0
}

// labels as the runner takes them: jobs run where the runner does.
func labels(c v1alpha1.RunnerConfig) []string {
	all := make([]string, 0, len(c.Labels))
	for _, l := range c.Labels {
		all = append(all, l+":host")
	}
	return all
}
