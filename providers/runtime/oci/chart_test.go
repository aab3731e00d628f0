package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

func TestResolveAndPull(t *testing.T) {
	f := newRegistry(t)
	digest := f.push(t, "charts/runtime", "1.0.0_a", chartImage(t, chartLayerType, chartArchive(t, "1.0.0+a")))
	f.set("bearer", nil)
	c := f.client()
	c.Charts = &ChartCache{}

	got, err := c.Resolve(context.Background(), f.host+"/charts/runtime", "1.0.0+a")
	if err != nil || got != digest {
		t.Fatalf("Resolve: got %s, %v, want %s", got, err, digest)
	}
	ch, err := c.PullChart(context.Background(), f.host+"/charts/runtime", digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(chartArchive(t, "1.0.0+a"), ch); diff != "" {
		t.Error(diff)
	}

	f.set("", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusTeapot); return true })
	again, err := c.PullChart(context.Background(), f.host+"/charts/runtime", digest)
	if err != nil {
		t.Fatalf("a pulled chart is not asked for again: %v", err)
	}
	if diff := cmp.Diff(ch, again); diff != "" {
		t.Error(diff)
	}
}

func TestChartRefused(t *testing.T) {
	f := newRegistry(t)
	archive := chartArchive(t, "1.0.0")
	digest := f.push(t, "charts/runtime", "1.0.0", chartImage(t, chartLayerType, archive))
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.push(t, "charts/image", "1.0.0", img)
	f.push(t, "charts/empty", "1.0.0", chartImage(t, "application/octet-stream", archive))
	bomb := f.push(t, "charts/bomb", "1.0.0", chartImage(t, chartLayerType, archiveOf(t, 1, maxUnpacked+1)))
	swarm := f.push(t, "charts/swarm", "1.0.0", chartImage(t, chartLayerType, archiveOf(t, maxEntries+1, 0)))
	broken := f.push(t, "charts/broken", "1.0.0", chartImage(t, chartLayerType, []byte("not a tar")))

	cases := map[string]struct {
		reason     string
		repository string
		version    string
		digest     string
		fault      fault
		client     func(*Client)
		want       string
	}{
		"NoSuchVersion":     {reason: "a version that was not pushed is named as such", repository: "charts/runtime", version: "9.9.9", want: "has no such version"},
		"Image":             {reason: "an image is not a chart", repository: "charts/image", version: "1.0.0", want: "not a Helm chart"},
		"NoLayer":           {reason: "a chart without archive is not a chart", repository: "charts/empty", version: "1.0.0", want: "no layer of type"},
		"PlainHTTP":         {reason: "plain HTTP is spoken to listed hosts only", repository: "charts/runtime", version: "1.0.0", client: func(c *Client) { c.Insecure = nil }, want: "plain HTTP"},
		"Page":              {reason: "a web page is not a manifest", repository: "charts/runtime", version: "1.0.0", fault: on("/manifests/", body("text/html", "<html>")), want: "not an image manifest"},
		"Denied":            {reason: "a denial names the pull secret", repository: "charts/runtime", version: "1.0.0", fault: on("/manifests/", status(http.StatusForbidden)), want: "check the pull secret"},
		"Unavailable":       {reason: "the registry's status is told", repository: "charts/runtime", version: "1.0.0", fault: on("/manifests/", status(http.StatusBadGateway)), want: "502 Bad Gateway"},
		"OtherManifest":     {reason: "a manifest with another digest is refused", repository: "charts/image", digest: digest, want: "has no such version"},
		"OtherBlob":         {reason: "an archive with another digest is refused", repository: "charts/runtime", digest: digest, fault: on("/blobs/", body("application/octet-stream", "evil")), want: "the registry served sha256"},
		"EndlessBlob":       {reason: "an archive is read up to the limit", repository: "charts/runtime", digest: digest, fault: on("/blobs/", endless), want: "more than is allowed"},
		"BrokenArchive":     {reason: "what is not an archive is said to be none", repository: "charts/broken", digest: broken, want: "cannot read chart"},
		"Bomb":              {reason: "an archive is bounded unpacked, too", repository: "charts/bomb", digest: bomb, want: "it unpacks to more than 32 MiB"},
		"Swarm":             {reason: "and may have so many files", repository: "charts/swarm", digest: swarm, want: "it has more than 4096 files and folders"},
		"NotADigest":        {reason: "a digest is checked before it is asked for", repository: "charts/runtime", digest: "latest", want: "cannot pull chart"},
		"RedirectToPrivate": {reason: "a registry must not make us read from inside", repository: "charts/runtime", digest: digest, fault: on("/blobs/", redirect("http://169.254.169.254/latest")), want: "private address"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.set("", tc.fault)
			c := f.client()
			if tc.client != nil {
				tc.client(&c)
			}
			var err error
			if tc.digest != "" {
				_, err = c.PullChart(context.Background(), f.host+"/"+tc.repository, tc.digest)
			} else {
				_, err = c.Resolve(context.Background(), f.host+"/"+tc.repository, tc.version)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestChartCacheForgetsTheLeastUsed(t *testing.T) {
	c := &ChartCache{}
	half := make([]byte, maxCache/2)
	c.put("a", half)
	c.put("b", half)
	c.get("a")
	c.put("c", half)
	_, a := c.get("a")
	_, b := c.get("b")
	if !a || b {
		t.Errorf("got a %v, b %v; want the least used one, b, gone", a, b)
	}
}

// archiveOf a number of files of a size.
func archiveOf(t *testing.T, files, size int) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	zipped := gzip.NewWriter(out)
	to := tar.NewWriter(zipped)
	for i := range files {
		if err := to.WriteHeader(&tar.Header{Name: fmt.Sprintf("runtime/files/%d", i), Mode: 0o600, Size: int64(size)}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []io.Closer{to, zipped} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func endless(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 1<<20)
	for range maxChart/len(block) + 2 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func redirect(to string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}
