package build

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// epoch is when everything that is built was made, so that it can be made again.
var epoch = time.Unix(0, 0).UTC()

// nonRoot is the user and group that our binaries run as.
const nonRoot = 65532

// An entry of a layer. One without content and with a trailing slash is a folder.
type entry struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// archive entries in the order given, with nothing in it but what they say.
func archive(entries []entry) ([]byte, error) {
	b := &bytes.Buffer{}
	w := tar.NewWriter(b)
	for _, e := range entries {
		h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: epoch}
		if len(e.name) > 0 && e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot archive: %w", err)
	}
	return b.Bytes(), nil
}

// layer of an image, with entries in the order given.
func layer(entries ...entry) (v1.Layer, error) {
	t, err := archive(entries)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t)), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("cannot make a layer: %w", err)
	}
	return l, nil
}
