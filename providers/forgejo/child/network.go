package child

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The annotations by which Multus attaches a pod to more networks, or to another one in place of the cluster's.
var networkAnnotations = []string{"k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network"}

// A network as an annotation of Multus selects it.
type network struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// ownNetworks are in the job namespace: those of other namespaces are other tenants', and Multus lets anybody use them unless the
// cluster has it isolate namespaces.
func ownNetworks(field string, annotations map[string]string, namespace string) error {
	for _, key := range networkAnnotations {
		for _, n := range networksOf(annotations[key]) {
			if n.Namespace != "" && n.Namespace != namespace {
				return refusedNetwork(fmt.Sprintf("%s[%s]", field, key), n)
			}
		}
	}
	return nil
}

func refusedNetwork(field string, n network) error {
	return refused(field, "the network %s is of namespace %s: use one of the job namespace", n.Name, n.Namespace)
}

// networksOf an annotation, which is a list in JSON, or one with commas. What is neither Multus refuses.
func networksOf(annotation string) []network {
	if strings.ContainsAny(annotation, `[{"`) {
		var all []network
		if err := json.Unmarshal([]byte(annotation), &all); err != nil {
			return nil
		}
		return all
	}
	var all []network
	for n := range strings.SplitSeq(annotation, ",") {
		all = append(all, networkNamed(n))
	}
	return all
}

// networkNamed as namespace/name, or as the name alone.
func networkNamed(name string) network {
	if namespace, name, ok := strings.Cut(strings.TrimSpace(name), "/"); ok {
		return network{Name: name, Namespace: namespace}
	}
	return network{Name: name}
}
