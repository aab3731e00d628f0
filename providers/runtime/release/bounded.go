package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Bounds of Helm's records. Whoever may write Secrets in an environment's namespace can write what looks like one, and a
// megabyte of it unpacks to a gigabyte.
const (
	// maxRecordBytes is how large a record may be once unpacked: a manifest of 4 MiB, as JSON, with room to spare.
	maxRecordBytes = 16 << 20
	// maxRecords is how many Secrets may call themselves records of one release. Helm keeps [historyMax], and one more while it
	// upgrades.
	maxRecords = 16
)

// recordsIn is Helm's store of records in a namespace's Secrets.
func recordsIn(s corev1client.SecretInterface) *storage.Storage {
	return storage.Init(driver.NewSecrets(boundedSecrets{s}))
}

// boundedSecrets are the Secrets that Helm keeps its records in. It refuses those that are too large or too many, before Helm
// unpacks them.
type boundedSecrets struct {
	corev1client.SecretInterface
}

// Get a record.
func (b boundedSecrets) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	s, err := b.SecretInterface.Get(ctx, name, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // Helm asks what kind of error it is.
	}
	return s, checkRecord(s)
}

// List records.
func (b boundedSecrets) List(ctx context.Context, o metav1.ListOptions) (*corev1.SecretList, error) {
	o.Limit = maxRecords
	l, err := b.SecretInterface.List(ctx, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // Helm asks what kind of error it is.
	}
	if l.Continue != "" {
		return nil, errors.Errorf("more than %d Secrets match %s, and Helm keeps %d records of a release: something in the namespace makes others; delete those", maxRecords, o.LabelSelector, historyMax)
	}
	for i := range l.Items {
		if err := checkRecord(&l.Items[i]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// checkRecord unpacks a record as Helm will, and keeps nothing of it.
func checkRecord(s *corev1.Secret) error {
	packed, err := base64.StdEncoding.DecodeString(string(s.Data["release"]))
	if err != nil {
		return nil //nolint:nilerr // Helm says what is wrong with it.
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil //nolint:nilerr // It is not packed, and no larger than a Secret may be.
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxRecordBytes+1))
	if err == nil && n > maxRecordBytes {
		return errors.Errorf("Secret %s calls itself a record of Helm and unpacks to more than %d MiB: something in namespace %s made it; delete it", s.Name, maxRecordBytes>>20, s.Namespace)
	}
	return nil
}
