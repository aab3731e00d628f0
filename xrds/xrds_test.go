// Package xrds_test holds the generated definitions against what Crossplane and the API server make of them.
package xrds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// definitions are the CRDs that Crossplane makes of every XRD here, by kind.
func definitions(t *testing.T) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	crds := map[string]*extv1.CustomResourceDefinition{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		xrd := &xpv1.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, xrd); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		xrd.SetUID("11111111-2222-3333-4444-555555555555")
		composite, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		claim, err := xcrd.ForCompositeResourceClaim(xrd)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		crds[composite.Spec.Names.Kind], crds[claim.Spec.Names.Kind] = composite, claim
	}
	return crds
}

// ofProviders are the definitions of the managed resources, which hold what claims say.
func ofProviders(t *testing.T) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../package/provider-*/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	crds := map[string]*extv1.CustomResourceDefinition{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		crds[crd.Name] = crd
	}
	return crds
}

func TestTheAPIServerTakesEveryDefinition(t *testing.T) {
	all := definitions(t)
	maps.Copy(all, ofProviders(t))
	for kind, crd := range all {
		extv1.SetDefaults_CustomResourceDefinition(crd)
		extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, err := range extvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
			if !strings.Contains(err.Field, "status.storedVersions") { // The API server fills it in.
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	for kind, crd := range definitions(t) {
		if strings.HasPrefix(kind, "X") {
			continue
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			explained(t, kind+"."+part, schema.Properties[part])
		}
	}
}

// crossplanes are fields that Crossplane adds and explains, or does not.
var crossplanes = map[string]bool{
	"conditions": true, "connectionDetails": true, "claimConditionTypes": true, "resourceRef": true, "compositionRef": true, "compositionSelector": true,
	"compositionRevisionRef": true, "compositionRevisionSelector": true, "compositionUpdatePolicy": true, "compositeDeletePolicy": true,
	"publishConnectionDetailsTo": true, "writeConnectionSecretToRef": true,
}

func explained(t *testing.T, path string, s extv1.JSONSchemaProps) {
	t.Helper()
	for name, p := range s.Properties {
		if crossplanes[name] {
			continue
		}
		if p.Description == "" && !leafOfSchemaless(p) {
			t.Errorf("%s.%s: kubectl explain has nothing to say", path, name)
		}
		explained(t, path+"."+name, p)
		if p.Items != nil && p.Items.Schema != nil {
			explained(t, path+"."+name+"[]", *p.Items.Schema)
		}
	}
}

func leafOfSchemaless(p extv1.JSONSchemaProps) bool {
	return p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
}

// checker judges claims as the API server would.
type checker struct {
	schema     *structuralschema.Structural
	openapi    validation.SchemaValidator
	expression *cel.Validator
}

func checkers(t *testing.T) map[string]checker {
	t.Helper()
	cs := map[string]checker{}
	for kind, crd := range definitions(t) {
		internal := &apiextensions.JSONSchemaProps{}
		if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
			t.Fatal(err)
		}
		s, err := structuralschema.NewStructural(internal)
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := validation.NewSchemaValidator(internal)
		if err != nil {
			t.Fatal(err)
		}
		cs[kind] = checker{schema: s, openapi: v, expression: cel.NewValidator(s, true, celconfig.PerCallLimit)}
	}
	return cs
}

// check applies defaults and returns what is wrong with an object. Old is what it replaces, or nil.
func (c checker) check(obj, old map[string]any) error {
	defaulting.Default(obj, c.schema)
	var errs []error
	for _, err := range validation.ValidateCustomResource(nil, obj, c.openapi) {
		errs = append(errs, err)
	}
	var before any
	if old != nil {
		before = old
	}
	cels, _ := c.expression.Validate(context.Background(), nil, c.schema, obj, before, celconfig.RuntimeCELCostBudget)
	for _, err := range cels {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func TestExamplesAreValid(t *testing.T) {
	cs := checkers(t)
	checked := 0
	err := filepath.WalkDir("../cluster/examples", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw = bytes.ReplaceAll(raw, []byte("${EDGE_CA}"), []byte("Q0E=")) // Filled in where they are applied.
		dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if c, ok := cs[u.GetKind()]; ok {
				checked++
				if err := c.check(u.Object, nil); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	})
	if err != nil || checked < 3 {
		t.Fatalf("checked %d claims: %v", checked, err)
	}
}

// TestBadClaimsAreNamed shows, for each rule of a schema, a claim that breaks it and what the user reads.
func TestBadClaimsAreNamed(t *testing.T) {
	cs := checkers(t)
	cases := map[string]struct{ kind, spec, old, want string }{
		"UnknownType":             {"Environment", `{type: cloud}`, "", `supported values: "runtime", "remote-agent", "local-agent"`},
		"TypeIsImmutable":         {"Environment", `{type: runtime}`, `{type: local-agent}`, "type is immutable"},
		"ComponentsOfAnAgent":     {"Environment", `{type: local-agent, components: [{name: db, chart: postgres, version: 1.2.0}]}`, "", "set type: runtime"},
		"VersionIsNoTag":          {"Environment", `{type: runtime, version: "a/b"}`, "", "spec.version"},
		"ServiceIsNoName":         {"Environment", `{type: runtime, expose: {services: ["Mcp"]}}`, "", "spec.expose.services"},
		"ComponentOutside":        {"Environment", `{type: runtime, components: [{name: db, chart: "a/../../private", version: 1.2.0}]}`, "", "spec.components[0].chart"},
		"ValuesOfAnotherTenant":   {"Environment", `{type: runtime, components: [{name: db, chart: postgres, version: 1.2.0, valuesFrom: [{kind: Secret, name: ../../tenant-globex/secrets/x}]}]}`, "", "spec.components[0].valuesFrom[0].name"},
		"ComponentCalledDevops":   {"Environment", `{type: runtime, components: [{name: devops, chart: postgres, version: 1.2.0}]}`, "", "names of the runtime's own objects"},
		"ComponentCalledMCP":      {"Environment", `{type: runtime, components: [{name: mcp, chart: postgres, version: 1.2.0}]}`, "", "names of the runtime's own objects"},
		"ComponentCalledEdge":     {"Environment", `{type: runtime, components: [{name: edge, chart: postgres, version: 1.2.0}]}`, "", "names of the runtime's own objects"},
		"ComponentCalledHome":     {"Environment", `{type: runtime, components: [{name: devops-home, chart: postgres, version: 1.2.0}]}`, "", "names of the runtime's own objects"},
		"SystemOwner":             {"Tenant", `{owners: [{kind: Group, name: "system:authenticated"}]}`, "", "system users and groups cannot own a tenant"},
		"RegistryWithScheme":      {"Tenant", `{registry: {prefix: "https://ghcr.io/acme"}}`, "", "prefix is host[:port]/path"},
		"RegistryWithTag":         {"Tenant", `{registry: {prefix: "ghcr.io/acme:tag"}}`, "", "without scheme, tag"},
		"RegistryInUpperCase":     {"Tenant", `{registry: {prefix: "ghcr.io/Acme"}}`, "", "the path in lower case"},
		"AccountOfNoNamespace":    {"Tenant", `{owners: [{kind: ServiceAccount, name: ci}]}`, "", "a ServiceAccount needs the namespace"},
		"GroupOfANamespace":       {"Tenant", `{owners: [{kind: Group, name: devs, namespace: ci}]}`, "", "users and groups are in none"},
		"NegativeCap":             {"Tenant", `{quota: {perEnvironment: {cpu: "-1", memory: 20Gi, storage: 40Gi}}}`, "", "an amount is zero or more"},
		"NegativeTotal":           {"Tenant", `{quota: {total: {cpu: "16", memory: -20Gi, storage: 40Gi}}}`, "", "an amount is zero or more"},
		"NegativeSize":            {"Environment", `{type: runtime, size: {cpu: "8", memory: 20Gi, storage: "-1"}}`, "", "an amount is zero or more"},
		"AmountOfAnExponent":      {"Environment", `{type: runtime, size: {cpu: "1e999999999", memory: 20Gi, storage: 40Gi}}`, "", "without sign and exponent"},
		"AmountOfATinyExponent":   {"Environment", `{type: runtime, size: {cpu: "1e-999999999", memory: 20Gi, storage: 40Gi}}`, "", "without sign and exponent"},
		"AmountOfABrokenExponent": {"Tenant", `{quota: {total: {cpu: "1e1.5", memory: 20Gi, storage: 40Gi}}}`, "", "without sign and exponent"},
		"AmountWithoutName":       {"Tenant", `{quota: {perEnvironment: {cpu: "8", memory: 1000E, storage: 40Gi}}}`, "", "below 1E"},
		"AccountOfNoName":         {"Tenant", `{owners: [{kind: ServiceAccount, name: "Build Bot", namespace: ci}]}`, "", "no ServiceAccount can have that name"},
		"AccountInNoNamespace":    {"Tenant", `{owners: [{kind: ServiceAccount, name: ci, namespace: "C I"}]}`, "", "spec.owners[0].namespace"},
		"PullSecretElsewhere":     {"Tenant", `{registry: {prefix: ghcr.io/acme, pullSecretRef: {name: ../../x}}}`, "", "spec.registry.pullSecretRef.name"},
		"NegativeLimit":           {"Tenant", `{quota: {maxEnvironments: -1}}`, "", "spec.quota.maxEnvironments"},
		"ServerWithoutTLS":        {"Context", context1("http://203.0.113.7:6443", `{secretRef: {name: x}}`, ""), "", "spec.server"},
		"ServerWithPath":          {"Context", context1("https://203.0.113.7:6443/x", `{secretRef: {name: x}}`, ""), "", "spec.server"},
		"ServerWithoutPort":       {"Context", context1("https://203.0.113.7:badport", `{secretRef: {name: x}}`, ""), "", "spec.server"},
		"ServerWithHugePort":      {"Context", context1("https://203.0.113.7:65536", `{secretRef: {name: x}}`, ""), "", "the port of server is a number from 1 to 65535"},
		"ServerWithPortZero":      {"Context", context1("https://[2001:db8::1]:0", `{secretRef: {name: x}}`, ""), "", "the port of server is a number from 1 to 65535"},
		"EmptyCiphertext":         {"Context", context1("https://203.0.113.7:6443", `{age: ""}`, ""), "", "spec.credentials.age"},
		"CredentialElsewhere":     {"Context", context1("https://203.0.113.7:6443", `{secretRef: {name: ../x}}`, ""), "", "spec.credentials.secretRef.name"},
		"StoreOfNoName":           {"Context", context1("https://203.0.113.7:6443", `{externalSecret: {key: k, storeRef: {name: "A b"}}}`, ""), "", "spec.credentials.externalSecret.storeRef.name"},
		"IngressClassOfNoName":    {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, zone: a.example, ingress: {addresses: ["203.0.113.7"], className: "A b"}`), "", "spec.ingress.className"},
		"GatewayOfNoName":         {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, zone: a.example, ingress: {addresses: ["203.0.113.7"], gatewayRef: {namespace: a, name: "A b"}}`), "", "spec.ingress.gatewayRef.name"},
		"GatewayInNoNamespace":    {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, zone: a.example, ingress: {addresses: ["203.0.113.7"], gatewayRef: {namespace: a.b, name: a}}`), "", "spec.ingress.gatewayRef.namespace"},
		"NoCredential":            {"Context", context1("https://203.0.113.7:6443", `{}`, ""), "", "exactly one of secretRef, externalSecret and age"},
		"TwoCredentials":          {"Context", context1("https://203.0.113.7:6443", `{secretRef: {name: x}, age: y}`, ""), "", "exactly one of secretRef, externalSecret and age"},
		"IngressWithoutZone":      {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, ingress: {addresses: ["203.0.113.7"], className: traefik}`), "", "ingress needs zone"},
		"IngressOfTwoKinds":       {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, zone: a.example, ingress: {addresses: ["203.0.113.7"], className: x, gatewayRef: {namespace: a, name: b}}`), "", "exactly one of className and gatewayRef"},
		"IngressAddressIsNoIP":    {"Context", context1("https://203.0.113.7:6443", `{age: y}`, `, zone: a.example, ingress: {addresses: [example.com], className: x}`), "", "addresses are IP addresses"},
		"PoolOfNoKind":            {"RunnerPool", pool("", ""), "", "exactly one of pod and vm"},
		"PoolOfTwoKinds":          {"RunnerPool", pool("", `pod: {template: {spec: {}}}, vm: {template: {spec: {}}}`), "", "exactly one of pod and vm"},
		"MinimumAboveMaximum":     {"RunnerPool", pool("", podKind+`, minRunners: 2, maxRunners: 1`), "", "minRunners must not exceed maxRunners"},
		"WindowAboveMaximum":      {"RunnerPool", pool("", podKind+`, maxRunners: 2, schedule: [{start: "0 8 * * 1-5", durationSeconds: 3600, minRunners: 3}]`), "", "minRunners of a schedule must not exceed maxRunners"},
		"FairnessOfAny":           {"RunnerPool", pool("", podKind+`, fairness: Owner`), "", "fairness needs assignment Targeted"},
		"StartsTooLate":           {"RunnerPool", pool("", podKind+`, startupTimeoutSeconds: 120, jobTimeoutSeconds: 60`), "", "startupTimeoutSeconds must not exceed jobTimeoutSeconds"},
		"ScopeOfNothing":          {"RunnerPool", pool(`{}`, podKind), "", "exactly one of instance, organization, user and repository"},
		"ScopeOfTwo":              {"RunnerPool", pool(`{organization: acme, repository: acme/web}`, podKind), "", "exactly one of instance, organization, user and repository"},
		"RepositoryWithoutOwner":  {"RunnerPool", pool(`{repository: web}`, podKind), "", "spec.forgejo.scope.repository"},
		"RepositoryElsewhere":     {"RunnerPool", pool(`{repository: acme/../../admin}`, podKind), "", "spec.forgejo.scope.repository"},
		"OrganizationElsewhere":   {"RunnerPool", pool(`{organization: ../admin}`, podKind), "", "spec.forgejo.scope.organization"},
		"LabelWithItsKind":        {"RunnerPool", pool("", podKind+`, labels: ["docker:host"]`), "", "spec.labels"},
		"LabelsInOne":             {"RunnerPool", pool("", podKind+`, labels: ["a,b"]`), "", "spec.labels"},
		"LabelWithSpace":          {"RunnerPool", pool("", podKind+`, labels: [" docker"]`), "", "spec.labels"},
		"NoLabels":                {"RunnerPool", pool("", podKind+`, labels: []`), "", "spec.labels"},
		"ServerWithUser":          {"RunnerPool", strings.Replace(pool("", podKind), "https://", "https://me:secret@", 1), "", "spec.forgejo.url"},
		"ServerOfNoScheme":        {"RunnerPool", strings.Replace(pool("", podKind), "https://", "", 1), "", "spec.forgejo.url"},
		"TokenOfAnotherTenant":    {"RunnerPool", strings.Replace(pool("", podKind), "{name: forgejo-pat}", "{name: x, key: ../y}", 1), "", "spec.forgejo.tokenSecretRef.key"},
		"PollsAllTheTime":         {"RunnerPool", pool("", podKind+`, pollIntervalSeconds: 1`), "", "spec.pollIntervalSeconds"},
		"TemplateIsNoObject":      {"RunnerPool", pool("", `pod: {template: "x"}`), "", "spec.pod.template"},
		"ClusterWideSecretsStore": {"Context", context1("https://203.0.113.7:6443", `{externalSecret: {key: k, storeRef: {kind: ClusterSecretStore, name: v}}}`, ""), "", `supported values: "SecretStore"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old map[string]any
			if tc.old != "" {
				old = object(t, tc.old)
			}
			err := cs[tc.kind].check(object(t, tc.spec), old)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("have %v, want %q", err, tc.want)
			}
		})
	}
}

const podKind = `pod: {template: {spec: {containers: [{name: job, image: alpine}]}}}`

// pool is a RunnerPool's spec of a scope, an organization's where it is empty, with more fields.
func pool(scope, more string) string {
	if scope == "" {
		scope = "{organization: acme}"
	}
	if !strings.Contains(more, "labels:") {
		more += ", labels: [docker]"
	}
	return `{forgejo: {url: "https://git.example.com", scope: ` + scope + `, tokenSecretRef: {name: forgejo-pat}}, jobNamespace: acme-ci, ` + strings.TrimPrefix(more, ", ") + `}`
}

// TestAmountsAreTakenAsTheyAreWritten, and as they are written anew by whoever reads them.
func TestAmountsAreTakenAsTheyAreWritten(t *testing.T) {
	cs := checkers(t)
	for _, amount := range []string{"8", "500m", "1.5", "20Gi", "1.5Ti", "0.000000001", "999999999999999999", "999.999999999P", "1.000000001Pi", "36864Mi", "100u"} {
		anew := resource.MustParse(amount)
		for _, a := range []string{amount, anew.String()} {
			if err := cs["Environment"].check(object(t, `{type: runtime, size: {cpu: "`+a+`", memory: 20Gi, storage: 40Gi}}`), nil); err != nil {
				t.Errorf("%s, written %s: %v", amount, a, err)
			}
		}
	}
}

func TestAPoolIsTakenWithItsDefaults(t *testing.T) {
	o := object(t, pool("", podKind))
	if err := checkers(t)["RunnerPool"].check(o, nil); err != nil {
		t.Fatal(err)
	}
	spec := o["spec"].(map[string]any) //nolint:forcetypeassert // A test.
	for field, want := range map[string]any{
		"minRunners": int64(0), "maxRunners": int64(1), "pollIntervalSeconds": int64(30), "startupTimeoutSeconds": int64(600), "jobTimeoutSeconds": int64(11400),
		"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1), "assignment": "Any", "fairness": "None",
	} {
		if have := spec[field]; fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("spec.%s: have %v, want %v its default", field, have, want)
		}
	}
}

func context1(server, credentials, more string) string {
	return `{server: "` + server + `", caBundle: UEVN, credentials: ` + credentials + more + `}`
}

func object(t *testing.T, spec string) map[string]any {
	t.Helper()
	s := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"spec": s}
}
