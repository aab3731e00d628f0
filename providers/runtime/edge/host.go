package edge

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// Limits of DNS.
const (
	longestName  = 253
	longestLabel = 63
)

// suffixOf is what each host of the environment ends in.
func suffixOf(p v1alpha1.EdgeParameters) string {
	return names.HostSuffix(p.Identity.Tenant, p.Identity.Environment, p.Exposure.Zone)
}

// domainOf is what the environment's certificate is for, by an asterisk in front of it.
func domainOf(p v1alpha1.EdgeParameters) string {
	return names.Domain(p.Identity.Tenant, p.Identity.Environment, p.Exposure.Zone)
}

// refuseHost says why a host cannot be exposed; empty when it can.
func refuseHost(s v1alpha1.ExposedService, suffix string) string {
	if !strings.HasSuffix(s.Host, suffix) {
		return fmt.Sprintf("host %s of service %s does not end in %s, as all hosts of this environment do", s.Host, s.Name, suffix)
	}
	if why := refuseName(s.Host, "host"); why != "" {
		return why
	}
	if len(s.Service) > longestLabel {
		return fmt.Sprintf("Service %s of service %s has %d characters and Kubernetes allows %d: choose a shorter name", s.Service, s.Name, len(s.Service), longestLabel)
	}
	return ""
}

// refuseName says why a name cannot be in DNS; empty when it can.
func refuseName(name, what string) string {
	if over := len(name) - longestName; over > 0 {
		return fmt.Sprintf("%s %s has %d characters and DNS allows %d: give the context a zone that is shorter by %d", what, name, len(name), longestName, over)
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(name, "*."), ".") {
		if len(label) > longestLabel {
			return fmt.Sprintf("label %s of %s %s has %d characters and DNS allows %d: choose a shorter name", label, what, name, len(label), longestLabel)
		}
		if problems := validation.IsDNS1123Label(label); len(problems) > 0 {
			return fmt.Sprintf("label %q of %s %s is no DNS label: %s", label, what, name, problems[0])
		}
	}
	return ""
}

// covers reports whether a route's host takes what is sent to host: it is the same, or an asterisk that stands for it.
func covers(routed, host string) bool {
	routed, host = strings.ToLower(strings.TrimSuffix(routed, ".")), strings.ToLower(host)
	if tail, wild := strings.CutPrefix(routed, "*"); wild {
		return strings.HasPrefix(tail, ".") && len(host) > len(tail) && strings.HasSuffix(host, tail)
	}
	return routed == host
}
