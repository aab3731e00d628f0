package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/version"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// longestAnswer that is read, in bytes.
const longestAnswer = 1 << 20

const anonymous = "system:anonymous"

// An answer is what a cluster says of itself and of who asks.
type answer struct {
	version string
	user    string
}

// probe asks the API server who it takes the credential for, and its version.
func (e Endpoint) probe(ctx context.Context, c *http.Client) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	review := &authenticationv1.SelfSubjectReview{}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
	body, err := json.Marshal(review)
	if err != nil {
		return answer{}, err
	}
	if err := e.ask(ctx, c, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, review); err != nil {
		return answer{}, err
	}
	user := review.Status.UserInfo.Username
	if review.Kind != "SelfSubjectReview" || user == "" {
		return answer{}, problem(steading.ReasonWrongAnswer, "it answers, but not as the API server of Kubernetes 1.28 or newer does: check spec.server")
	}
	if user == anonymous {
		return answer{}, problem(steading.ReasonCredentialRefused, "the API server does not know the %s and takes it for anybody's (%s): give a credential that it knows", e.Credential, anonymous)
	}
	v := &version.Info{}
	if err := e.ask(ctx, c, http.MethodGet, "/version", nil, v); err != nil {
		return answer{}, err
	}
	if v.GitVersion == "" {
		return answer{}, problem(steading.ReasonWrongAnswer, "it names no version of Kubernetes: check spec.server")
	}
	return answer{version: v.GitVersion, user: user}, nil
}

// request to the API server as the credential's owner.
func (e Endpoint) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.Server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if e.Credential.token != "" {
		req.Header.Set("Authorization", "Bearer "+e.Credential.token)
	}
	return req, nil
}

// ask for something and decode the answer into it.
func (e Endpoint) ask(ctx context.Context, c *http.Client, method, path string, body []byte, into any) error {
	res, err := e.do(ctx, c, method, path, body)
	if err != nil {
		return e.failed(err)
	}
	defer res.Body.Close() //nolint:errcheck // It was read, or is not wanted.
	b, err := io.ReadAll(io.LimitReader(res.Body, longestAnswer))
	if err != nil {
		return e.failed(err)
	}
	if err := e.judge(res, b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return problem(steading.ReasonWrongAnswer, "it answers with something that is not what an API server of Kubernetes says: check spec.server")
	}
	return nil
}

// do sends a request. When the server breaks off the connection it is sent again: a server that refuses a client certificate
// says so and hangs up, and whether that is read before the request fails to be written is a matter of luck.
func (e Endpoint) do(ctx context.Context, c *http.Client, method, path string, body []byte) (res *http.Response, err error) {
	for range 5 {
		req, rerr := e.request(ctx, method, path, body)
		if rerr != nil {
			return nil, rerr
		}
		res, err = c.Do(req)
		if !brokenOff(err) {
			break
		}
	}
	return res, err
}

// brokenOff reports whether the connection was broken off before there was an answer. What HTTP/2 calls that is not exported.
func brokenOff(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		(err != nil && strings.Contains(err.Error(), "http2: client conn could not be established"))
}

// judge an answer by its status and kind.
func (e Endpoint) judge(res *http.Response, body []byte) error {
	said := struct {
		Message string `json:"message"`
	}{}
	speaks := isJSON(res) && json.Unmarshal(body, &said) == nil
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized:
		return problem(steading.ReasonCredentialRefused, "the API server refuses the %s (401 Unauthorized): it is wrong, has expired or was revoked", e.Credential)
	case code >= 500 || code == http.StatusTooManyRequests:
		return problem(steading.ReasonTargetUnreachable, "the API server is not able to answer now (%d %s)", code, http.StatusText(code))
	case !speaks:
		return problem(steading.ReasonWrongAnswer, "it answers with %s (%d), not as an API server of Kubernetes does: check spec.server", kindOf(res), code)
	case code == http.StatusForbidden:
		return problem(steading.ReasonCredentialRefused, "the API server does not let the %s ask who it is (403 Forbidden): %s", e.Credential, kit.CleanMessage(said.Message))
	case code == http.StatusNotFound:
		return problem(steading.ReasonWrongAnswer, "it has no SelfSubjectReview, which API servers of Kubernetes 1.28 and newer have: check spec.server, or upgrade the cluster")
	case code >= 300:
		return problem(steading.ReasonWrongAnswer, "it answers with %d %s: check spec.server", code, http.StatusText(code))
	}
	return nil
}

func isJSON(res *http.Response) bool {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && t == "application/json"
}

func kindOf(res *http.Response) string {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return "something of no kind"
	case t == "text/html":
		return "a web page"
	}
	return t
}

// failed says why there was no answer, in words that do not change from one try to the next.
func (e Endpoint) failed(err error) error {
	var (
		known     *UnreachedError
		redirect  *target.RedirectError
		refused   *address.RefusedError
		remote    *net.OpError
		record    tls.RecordHeaderError
		dns       *net.DNSError
		malformed *net.AddrError
		timeout   net.Error
		wrapping  *url.Error
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &redirect):
		return problem(steading.ReasonWrongAnswer, "%s: set spec.server to the API server's own address", redirect)
	case errors.As(err, &refused):
		return problem(steading.ReasonAddressRefused, "%s", refused)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return problem(steading.ReasonCAMismatch, "%s", unverified(err))
	case errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "certificate"):
		// A TLS alert about our certificate. Its type is not exported.
		return problem(steading.ReasonCredentialRefused, "the server refuses the %s during the TLS handshake (%s)", e.Credential, remote.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return problem(steading.ReasonWrongAnswer, "it does not speak TLS: check spec.server")
	case errors.As(err, &malformed):
		return problem(steading.ReasonWrongAnswer, "%s is no address to be dialed (%s): set spec.server to https://host:port", malformed.Addr, malformed.Err)
	case errors.As(err, &dns):
		return problem(steading.ReasonTargetUnreachable, "the name %s does not resolve", dns.Name)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return problem(steading.ReasonTargetUnreachable, "the API server does not answer within %s", requestTimeout)
	case errors.As(err, &wrapping):
		err = wrapping.Err
	}
	return problem(steading.ReasonTargetUnreachable, "the API server does not answer: %s", kit.CleanMessage(err.Error()))
}

// unverified says why the server's certificate is not taken.
func unverified(err error) string {
	var (
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &host):
		return "the API server's certificate is not for the host in spec.server: " + host.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the API server's certificate has expired or is not valid yet"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "the API server's certificate was not signed by spec.caBundle: set it to the cluster's CA; if it is right, somebody else answers at spec.server"
	}
	return "the API server's certificate cannot be verified by spec.caBundle: " + kit.CleanMessage(err.Error())
}
