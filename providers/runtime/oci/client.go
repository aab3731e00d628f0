package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Limits of what a registry may answer.
const (
	// RequestTimeout bounds each question to a registry, authentication included.
	RequestTimeout = 10 * time.Second
	// pullTimeout bounds the download of a chart.
	pullTimeout = 50 * time.Second

	maxManifest = 4 << 20
	maxChart    = 20 << 20
)

// A Client reads registries. Its zero value reads public ones, over https only.
type Client struct {
	// Credentials by host. Nil: anonymous everywhere.
	Credentials Credentials
	// Insecure lists hosts, with port, that are spoken to by plain HTTP.
	Insecure []string
	// Charts keeps what was pulled. Nil: nothing is kept.
	Charts *ChartCache
	// Transport to the registries. Nil: one that gives up on dead hosts after five seconds.
	Transport http.RoundTripper
	// Timeout of each question. 0: RequestTimeout.
	Timeout time.Duration
}

func (c Client) transport() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	return defaultTransport
}

func (c Client) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return RequestTimeout
}

// repository parses a repository without scheme and tag. Only listed hosts may be spoken to by plain HTTP.
func (c Client) repository(repository string) (name.Repository, error) {
	repository = strings.TrimPrefix(repository, "oci://")
	repo, err := name.NewRepository(repository)
	if err != nil {
		return name.Repository{}, err
	}
	if listed(c.Insecure, repo.RegistryStr()) {
		return name.NewRepository(repository, name.Insecure)
	}
	return repo, nil
}

// A manifest as a registry served it, digest verified.
type manifest struct {
	mediaType types.MediaType
	digest    v1.Hash
	body      []byte
}

// acceptManifests is what is asked for: OCI and docker manifests of one image, and of many.
var acceptManifests = strings.Join([]string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1),
	string(types.DockerManifestList), string(types.DockerManifestSchema2),
}, ",")

// manifest reads the manifest of a tag or digest.
func (s *session) manifest(ctx context.Context, repo name.Repository, reference string) (*manifest, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v2/"+repo.RepositoryStr()+"/manifests/"+reference, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", acceptManifests)
	res, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNotFound {
		return nil, s.notFound(res)
	}
	if err := transport.CheckError(res, http.StatusOK); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	m := &manifest{mediaType: types.MediaType(mediaTypeOf(res.Header.Get("Content-Type"))), digest: digest, body: body}
	return m, m.check(reference, res.Header.Get("Docker-Content-Digest"))
}

// ErrAbsent is a registry's own word that it has no such manifest.
var ErrAbsent = errors.New("the registry has no such version; push it, or correct repository and version")

// notFound is ErrAbsent if a registry said so. A web server's page says that something stands between us and the
// registry.
func (s *session) notFound(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return err
	}
	var structured struct {
		Errors []transport.Diagnostic `json:"errors"`
	}
	if body = bytes.TrimSpace(body); len(body) > 0 {
		if err := json.Unmarshal(body, &structured); err != nil || len(structured.Errors) == 0 {
			return errors.New("the registry answers 404 Not Found, but not as a registry does")
		}
	}
	for _, d := range structured.Errors {
		switch d.Code {
		case transport.DeniedErrorCode, transport.UnauthorizedErrorCode, transport.TooManyRequestsErrorCode:
			return fmt.Errorf("the registry answers 404 Not Found with %s", d.Code)
		default:
		}
	}
	if res.Request.URL.Host != s.host {
		return fmt.Errorf("the registry redirects to %s, which answers 404 Not Found", res.Request.URL.Host)
	}
	return ErrAbsent
}

var errNonsense = errors.New("the registry's answer is not an image manifest")

// check refuses what is not a manifest, or not the one asked for.
func (m *manifest) check(reference, header string) error {
	if !m.mediaType.IsImage() && !m.mediaType.IsIndex() {
		return fmt.Errorf("%w but %q", errNonsense, m.mediaType)
	}
	var head struct {
		SchemaVersion int            `json:"schemaVersion"`
		Config        *v1.Descriptor `json:"config"`
	}
	if err := json.Unmarshal(m.body, &head); err != nil || head.SchemaVersion != 2 {
		return errNonsense
	}
	if m.mediaType.IsImage() && head.Config == nil {
		return errNonsense
	}
	if strings.HasPrefix(reference, "sha256:") && reference != m.digest.String() {
		return fmt.Errorf("the registry served %s for %s", m.digest, reference)
	}
	if header != "" && header != m.digest.String() {
		return fmt.Errorf("the registry says %s and serves %s", header, m.digest)
	}
	return nil
}

func mediaTypeOf(contentType string) string {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(mediaType)
}
