package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTargetsNeedNothingElse: what is installed on the clusters of contexts is the roles that are bound there, and the
// policies that keep namespaces, hosts and Services, each with its binding.
func TestTargetsNeedNothingElse(t *testing.T) {
	targets, err := Targets()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range targets {
		got = append(got, u.GetKind()+" "+strings.TrimSuffix(u.GetName(), ".steading.dev"))
	}
	want := []string{
		"ClusterRole steading:environment-deployer", "ClusterRole steading:environment-owner",
		"ValidatingAdmissionPolicy refuse-changing-guard-rails", "ValidatingAdmissionPolicyBinding refuse-changing-guard-rails",
		"ValidatingAdmissionPolicy refuse-changing-namespaces", "ValidatingAdmissionPolicyBinding refuse-changing-namespaces",
		"ValidatingAdmissionPolicy refuse-external-services", "ValidatingAdmissionPolicyBinding refuse-external-services",
		"ValidatingAdmissionPolicy refuse-foreign-hosts", "ValidatingAdmissionPolicyBinding refuse-foreign-hosts",
		"ValidatingAdmissionPolicy refuse-host-annotations", "ValidatingAdmissionPolicyBinding refuse-host-annotations",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets: -want, +got:\n%s", diff)
	}
}
