package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ociname "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/placement"
	"github.com/steading-dev/steading/providers/runtime/render"
)

// deployment of a chart that needs two CPUs, and four more with docker.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  strategy: {type: Recreate}
  template:
    spec:
      containers:
      - {name: a, resources: {limits: {cpu: 2, memory: 1Gi}}}
      {{- if .Values.docker.enabled }}
      - {name: docker, resources: {limits: {cpu: 4, memory: 2Gi}}}
      {{- end }}
`

// pushed is a registry with a chart of one template.
func pushed(t *testing.T, template string) (source placement.ChartSource, digest string) {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	path, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "runtime", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json")
	img, err = mutate.Append(img, mutate.Addendum{Layer: static.NewLayer(archive, layer), MediaType: layer})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := ociname.NewTag(host+"/charts/runtime:1.0.0", ociname.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return placement.ChartSource{
		ChartSource: v1alpha1.ChartSource{Repository: host + "/charts/runtime", Version: "1.0.0"}, Insecure: host,
	}, d.String()
}

func TestResolveTellsDigestAndFloor(t *testing.T) {
	source, digest := pushed(t, deployment)
	c := &charts{reader: fake.NewClientBuilder().Build(), pulled: &oci.ChartCache{}, render: render.New(render.Limits{})}
	have, err := c.resolve(context.Background(), "acme", source)
	if err != nil {
		t.Fatal(err)
	}
	want := placement.ResolvedChart{
		Digest: digest, Floor: *steading.MustResources("2", "1Gi", "0"), DockerFloor: *steading.MustResources("6", "3Gi", "0"),
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestResolveSaysWhatIsWrong(t *testing.T) {
	source, _ := pushed(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}")
	absent := source
	absent.Version = "2.0.0"
	secret := source
	secret.PullSecret = "pull"
	broken := source
	broken.PullSecret = "broken"
	reader := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "broken"}}).Build()

	cases := map[string]struct {
		reason string
		source placement.ChartSource
		want   string
	}{
		"NotToBeCounted": {"A chart whose needs cannot be told is not deployed.", source, "cannot tell what chart " + source.Repository + " version 1.0.0 needs"},
		"NoSuchVersion":  {"The registry's own words.", absent, "has no such version"},
		"NoSecret":       {"The Secret is named, and who names it.", secret, `cannot get Secret pull, the ClusterProviderConfig's pullSecretRef`},
		"BrokenSecret":   {"Also when it holds no credential.", broken, `cannot read Secret broken, the ClusterProviderConfig's pullSecretRef`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := (&charts{reader: reader, pulled: &oci.ChartCache{}, render: render.New(render.Limits{})}).resolve(context.Background(), "acme", tc.source)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}
