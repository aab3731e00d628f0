package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of a Helm chart in an OCI registry.
const (
	chartConfigType types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartLayerType  types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Resolve returns the digest of the manifest of a chart's version, sha256:..., for PullChart.
func (c Client) Resolve(ctx context.Context, repository, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	digest, err := c.resolve(ctx, repository, version)
	observe(operationResolve, err)
	if err != nil {
		return "", fmt.Errorf("cannot resolve chart %s version %s: %w", repository, version, explain(err))
	}
	return digest, nil
}

func (c Client) resolve(ctx context.Context, repository, version string) (string, error) {
	repo, err := c.repository(repository)
	if err != nil {
		return "", err
	}
	// A tag has no "+", which Helm writes as "_".
	tag, err := name.NewTag(repo.Name()+":"+strings.ReplaceAll(version, "+", "_"), name.StrictValidation)
	if err != nil {
		return "", err
	}
	s, err := c.session(ctx, repo, maxManifest)
	if err != nil {
		return "", err
	}
	m, err := s.manifest(ctx, repo, tag.TagStr())
	if err != nil {
		return "", err
	}
	if _, err := chartLayer(m); err != nil {
		return "", err
	}
	return m.digest.String(), nil
}

// PullChart returns the archive of the chart whose manifest has the digest, tar+gzip. It is of bounded size, unpacked too. It
// is shared, and not to be changed.
func (c Client) PullChart(ctx context.Context, repository, digest string) ([]byte, error) {
	archive, ok := c.Charts.get(digest)
	if ok {
		return archive, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	archive, err := c.pull(ctx, repository, digest)
	observe(operationPull, err)
	if err != nil {
		return nil, fmt.Errorf("cannot pull chart %s@%s: %w", repository, digest, explain(err))
	}
	if err := checkArchive(archive); err != nil {
		return nil, fmt.Errorf("cannot read chart %s@%s: %w", repository, digest, err)
	}
	c.Charts.put(digest, archive)
	return archive, nil
}

func (c Client) pull(ctx context.Context, repository, digest string) ([]byte, error) {
	repo, err := c.repository(repository)
	if err != nil {
		return nil, err
	}
	if _, err := v1.NewHash(digest); err != nil {
		return nil, err
	}
	s, err := c.session(ctx, repo, maxChart+1)
	if err != nil {
		return nil, err
	}
	m, err := s.manifest(ctx, repo, digest)
	if err != nil {
		return nil, err
	}
	layer, err := chartLayer(m)
	if err != nil {
		return nil, err
	}
	return s.blob(ctx, repo, layer)
}

// chartLayer is the one layer of a chart's manifest that holds its archive.
func chartLayer(m *manifest) (v1.Descriptor, error) {
	if !m.mediaType.IsImage() {
		return v1.Descriptor{}, errors.New("it is not a Helm chart but an index of images")
	}
	parsed, err := v1.ParseManifest(bytes.NewReader(m.body))
	if err != nil {
		return v1.Descriptor{}, errNonsense
	}
	if parsed.Config.MediaType != chartConfigType {
		return v1.Descriptor{}, fmt.Errorf("it is not a Helm chart: its config is of type %q", parsed.Config.MediaType)
	}
	for _, layer := range parsed.Layers {
		if layer.MediaType != chartLayerType {
			continue
		}
		if layer.Size > maxChart {
			return v1.Descriptor{}, fmt.Errorf("the chart has %d bytes and may have %d", layer.Size, int64(maxChart))
		}
		return layer, nil
	}
	return v1.Descriptor{}, fmt.Errorf("it is not a Helm chart: it has no layer of type %q", chartLayerType)
}

func (s *session) blob(ctx context.Context, repo name.Repository, layer v1.Descriptor) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v2/"+repo.RepositoryStr()+"/blobs/"+layer.Digest.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := transport.CheckError(res, http.StatusOK); err != nil {
		return nil, err
	}
	archive, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	got, size, err := v1.SHA256(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	if got != layer.Digest || size != layer.Size {
		return nil, fmt.Errorf("the registry served %s (%d bytes) for %s (%d bytes)", got, size, layer.Digest, layer.Size)
	}
	return archive, nil
}

// A ChartCache keeps the archives of the charts that were pulled last, by digest. A nil ChartCache keeps nothing.
type ChartCache struct {
	mu       sync.Mutex
	archives map[string][]byte
	order    []string // oldest use first
	size     int
}

// maxCache bytes of archives are kept. A platform has a handful of charts.
const maxCache = 64 << 20

func (c *ChartCache) get(digest string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	archive, ok := c.archives[digest]
	if ok {
		c.touch(digest)
	}
	return archive, ok
}

func (c *ChartCache) put(digest string, archive []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.archives == nil {
		c.archives = map[string][]byte{}
	}
	if _, ok := c.archives[digest]; !ok {
		c.archives[digest] = archive
		c.size += len(archive)
	}
	c.touch(digest)
	for c.size > maxCache && len(c.order) > 1 {
		c.size -= len(c.archives[c.order[0]])
		delete(c.archives, c.order[0])
		c.order = c.order[1:]
	}
}

// touch makes digest the last used.
func (c *ChartCache) touch(digest string) {
	c.order = append(slices.DeleteFunc(c.order, func(d string) bool { return d == digest }), digest)
}
