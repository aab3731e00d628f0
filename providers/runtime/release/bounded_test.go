package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// forged is a Secret that calls itself a record of release acme-devops.
func forged(t *testing.T, revision, unpacked int) *corev1.Secret {
	t.Helper()
	b := &bytes.Buffer{}
	w := gzip.NewWriter(b)
	if _, err := w.Write(bytes.Repeat([]byte(" "), unpacked)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "acme-dev", Name: fmt.Sprintf("sh.helm.release.v1.acme-devops.v%d", revision),
			Labels: map[string]string{"owner": "helm", "name": "acme-devops", "status": "deployed", "version": strconv.Itoa(revision)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(b.Bytes()))},
	}
}

// TestRecordsAreBounded: a Secret that looks like a record of Helm's, and is not, costs the provider no memory.
func TestRecordsAreBounded(t *testing.T) {
	cs := fake.NewClientset(forged(t, 9, maxRecordBytes+1))
	records := recordsIn(cs.CoreV1().Secrets("acme-dev"))
	const says = "unpacks to more than 16 MiB"
	if _, err := records.Get("acme-devops", 9); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it refused: %s", err, says)
	}
	if _, err := records.Last("acme-devops"); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it refused: %s", err, says)
	}
}

// TestRecordsAreFew: so do many of them.
func TestRecordsAreFew(t *testing.T) {
	cs := fake.NewClientset()
	cs.PrependReactor("list", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		l := &corev1.SecretList{}
		list, ok := a.(clienttesting.ListActionImpl)
		if limit := list.ListOptions.Limit; !ok || limit == 0 || limit > maxRecords {
			t.Errorf("%d Secrets are asked for at once", limit)
		}
		l.Continue = "there is more"
		return true, l, nil
	})
	records := recordsIn(cs.CoreV1().Secrets("acme-dev"))
	if _, err := records.Last("acme-devops"); err == nil || !strings.Contains(err.Error(), "more than 16 Secrets match") {
		t.Errorf("got %v, want it refused", err)
	}
}

// TestRecordsOfHelmPass: what Helm writes it can read.
func TestRecordsOfHelmPass(t *testing.T) {
	records := recordsIn(fake.NewClientset().CoreV1().Secrets("acme-dev"))
	for revision := range historyMax + 1 {
		r := &helm.Release{Name: "acme-devops", Namespace: "acme-dev", Version: revision + 1, Info: &helm.Info{Status: helm.StatusDeployed}, Manifest: strings.Repeat("a: b\n", 1<<18)}
		if err := records.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	last, err := records.Last("acme-devops")
	if err != nil || last.Version != historyMax+1 {
		t.Errorf("got %v, %v", last, err)
	}
}
