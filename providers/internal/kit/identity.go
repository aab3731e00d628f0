package kit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// Stamp puts an identity on an object that is made outside, as labels to select by and as annotations to hold against
// labels that somebody changed.
func Stamp(obj client.Object, id v1alpha1.Identity) {
	l, a := obj.GetLabels(), obj.GetAnnotations()
	if l == nil {
		l = map[string]string{}
	}
	if a == nil {
		a = map[string]string{}
	}
	l[names.LabelManagedBy] = names.ManagedBy
	for k, v := range stampOf(id) {
		l[k], a[k] = v, v
	}
	obj.SetLabels(l)
	obj.SetAnnotations(a)
}

// Labels are the labels of a [Stamp].
func Labels(id v1alpha1.Identity) map[string]string {
	l := stampOf(id)
	l[names.LabelManagedBy] = names.ManagedBy
	return l
}

// Stamped reports whether the object carries the whole stamp of the identity.
func Stamped(obj client.Object, id v1alpha1.Identity) bool {
	for k, v := range stampOf(id) {
		if obj.GetLabels()[k] != v || obj.GetAnnotations()[k] != v {
			return false
		}
	}
	return obj.GetLabels()[names.LabelManagedBy] == names.ManagedBy
}

// IdentityOf is the identity that an object carries; false when it carries none.
func IdentityOf(obj client.Object) (v1alpha1.Identity, bool) {
	at := func(key string) string {
		if v, ok := obj.GetAnnotations()[key]; ok {
			return v
		}
		return obj.GetLabels()[key]
	}
	id := v1alpha1.Identity{
		Tenant:      at(names.LabelTenant),
		Environment: at(names.LabelEnvironment),
		UID:         types.UID(at(names.LabelComposite)),
	}
	return id, id.UID != ""
}

// Ours returns nil when an object that exists outside carries the identity, or one that the operator let it take over:
// adoptFrom is the value of the claim's steading.dev/adopt-from annotation. Otherwise it returns a [NotOursError]; the
// object is then neither changed nor deleted.
func Ours(obj client.Object, id v1alpha1.Identity, adoptFrom string) error {
	found, ok := IdentityOf(obj)
	if ok && found == id {
		return nil
	}
	if ok && adoptFrom == string(found.UID) && found.Tenant == id.Tenant && found.Environment == id.Environment {
		return nil
	}
	e := &NotOursError{What: describe(obj), Want: id}
	if ok {
		e.Found = &found
	}
	return e
}

// A NotOursError says that something has the name of what should be made, but is not ours.
type NotOursError struct {
	// What was found, by kind and name.
	What string
	// Found is the identity it carries; nil when it carries none.
	Found *v1alpha1.Identity
	// Want is the identity it should carry.
	Want v1alpha1.Identity
}

// Error says what was found and how to go on.
func (e *NotOursError) Error() string {
	switch {
	case e.Found == nil:
		return fmt.Sprintf("%s exists and was not made by Steading, so it is neither changed nor deleted: delete or rename it, or delete this claim", e.What)
	case e.Found.Tenant != e.Want.Tenant || e.Found.Environment != e.Want.Environment:
		return fmt.Sprintf("%s exists and belongs to %s (composite %s), so it is neither changed nor deleted: delete that one first, or delete this claim",
			e.What, owner(*e.Found), e.Found.UID)
	default:
		return fmt.Sprintf("%s exists and belongs to another %s (composite %s, this one is %s), so it is neither changed nor deleted: "+
			"to take it over, an operator sets the annotation %s: %s on the claim",
			e.What, owner(*e.Found), e.Found.UID, e.Want.UID, names.AnnotationAdoptFrom, e.Found.UID)
	}
}

func stampOf(id v1alpha1.Identity) map[string]string {
	s := map[string]string{names.LabelTenant: id.Tenant, names.LabelComposite: string(id.UID)}
	if id.Environment != "" {
		s[names.LabelEnvironment] = id.Environment
	}
	return s
}

func owner(id v1alpha1.Identity) string {
	if id.Environment == "" {
		return "tenant " + id.Tenant
	}
	return "environment " + id.Tenant + "/" + id.Environment
}
