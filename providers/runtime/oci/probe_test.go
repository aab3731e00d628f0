package oci

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
)

// TestProbe is the table of the published-image probe, row by row.
func TestProbe(t *testing.T) {
	f := newRegistry(t)
	f.pushImage(t, "steading/devops")
	f.pushImage(t, "public/devops")
	f.pushImage(t, "acme/acme-devops")
	control, tenant, absent := f.host+"/steading/devops:1.4.2", f.host+"/acme/acme-devops:1.4.2", f.host+"/globex/globex-devops:1.4.2"
	untrusted := strings.TrimPrefix(untrustedRegistry(t).URL, "https://")
	wrong := func(c *Client) {
		c.Credentials = Credentials{f.host: authn.AuthConfig{Username: user, Password: "wrong"}}
	}
	none := func(c *Client) { c.Credentials = nil }

	cases := map[string]struct {
		reason         string
		auth           string
		fault          fault
		client         func(*Client)
		control, image string
		want           Answer
		message        string
	}{
		"Missing":              {reason: "control 200, tenant 404", auth: "bearer", image: absent, want: Missing},
		"MissingBasic":         {reason: "control 200, tenant 404, basic authentication", auth: "basic", image: absent, want: Missing},
		"MissingOpen":          {reason: "a registry that asks nobody for a credential hides nothing", client: none, image: absent, want: Missing},
		"MissingEmptyBody":     {reason: "a 404 without body is a registry's too", auth: "bearer", image: absent, fault: on("/globex/", status(http.StatusNotFound)), want: Missing},
		"Present":              {reason: "control 200, tenant 200", auth: "bearer", image: tenant, want: Present},
		"TenantUnauthorized":   {reason: "control 200, tenant 401", auth: "bearer", image: absent, fault: on("/globex/", status(http.StatusUnauthorized)), want: Inconclusive, message: "401"},
		"TenantForbidden":      {reason: "control 200, tenant 403", auth: "bearer", image: absent, fault: on("/globex/", status(http.StatusForbidden)), want: Inconclusive, message: "403"},
		"TenantLimited":        {reason: "control 200, tenant 429", auth: "bearer", image: absent, fault: on("/globex/", status(http.StatusTooManyRequests)), want: Inconclusive, message: "429"},
		"TenantServerError":    {reason: "control 200, tenant 500", auth: "bearer", image: absent, fault: on("/globex/", status(http.StatusInternalServerError)), want: Inconclusive, message: "500"},
		"TenantHangsUp":        {reason: "control 200, tenant network error", auth: "bearer", image: absent, fault: on("/globex/", hangUp), want: Inconclusive},
		"TenantSlow":           {reason: "control 200, tenant too slow", auth: "bearer", image: absent, fault: on("/globex/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), client: func(c *Client) { c.Timeout = 300 * time.Millisecond }, want: Inconclusive, message: "in time"},
		"TenantPage":           {reason: "control 200, tenant 200 that is no manifest", auth: "bearer", image: absent, fault: on("/globex/", body("text/html", "<html>hello</html>")), want: Inconclusive, message: "not an image manifest"},
		"TenantJSON":           {reason: "control 200, tenant 200 with a manifest's type and no manifest", auth: "bearer", image: absent, fault: on("/globex/", body("application/vnd.oci.image.manifest.v1+json", "{}")), want: Inconclusive, message: "not an image manifest"},
		"TenantNotFoundPage":   {reason: "a web server's 404 is not the registry's", auth: "bearer", image: absent, fault: on("/globex/", http.NotFound), want: Inconclusive, message: "not as a registry does"},
		"TenantNotFoundDenied": {reason: "a 404 that says denied is a denial", auth: "bearer", image: absent, fault: on("/globex/", func(w http.ResponseWriter, _ *http.Request) { registryError(w, http.StatusNotFound, "DENIED") }), want: Inconclusive, message: "DENIED"},
		"NoToken":              {reason: "no token", auth: "bearer", image: absent, fault: on("/token", body("application/json", `{}`)), want: Inconclusive},
		"TokenNotFound":        {reason: "the token service's 404 is not about the image", auth: "bearer", image: absent, fault: tokenNotFoundFor("globex"), want: Inconclusive, message: "404"},
		"ControlMissing":       {reason: "control 404", auth: "bearer", control: f.host + "/steading/devops:9.9.9", image: absent, want: Inconclusive, message: "control image"},
		"ControlError":         {reason: "control 500", auth: "bearer", image: absent, fault: on("/steading/", status(http.StatusInternalServerError)), want: Inconclusive, message: "control image"},
		"ControlErrorPresent":  {reason: "control 500 leaves the tenant's image unasked", auth: "bearer", image: tenant, fault: on("/steading/", status(http.StatusInternalServerError)), want: Inconclusive, message: "control image"},
		"ControlPage":          {reason: "control 200 that is no manifest", auth: "bearer", image: absent, fault: on("/steading/", body("text/html", "<html>")), want: Inconclusive, message: "control image"},
		"WrongCredential":      {reason: "a credential that does not read the control image proves nothing", auth: "bearer", client: wrong, image: absent, want: Inconclusive, message: "control image"},
		"Anonymous":            {reason: "who has no credential sees no difference between absent and invisible", auth: "bearer", client: none, control: f.host + "/public/devops:1.4.2", image: tenant, want: Inconclusive, message: "without a credential"},
		"HostsDiffer":          {reason: "a credential proven on one host says nothing about another", image: "registry.example.com/acme/acme-devops:1.4.2", want: Inconclusive, message: "another registry"},
		"Unparsable":           {reason: "an unparsable reference", image: f.host + "/Acme/:1", want: Inconclusive, message: "cannot parse"},
		"PlainHTTP":            {reason: "plain HTTP to a host that is not listed", client: func(c *Client) { c.Insecure = nil }, image: absent, want: Inconclusive, message: "plain HTTP"},
		"Untrusted":            {reason: "a certificate by a CA that nobody gave us, at an address that is tried by plain HTTP too", control: untrusted + "/steading/devops:1.4.2", image: untrusted + "/globex/globex-devops:1.4.2", want: Inconclusive, message: "certificate signed by unknown authority; a private CA"},
		"Down":                 {reason: "a registry that is not there", client: func(c *Client) { c.Insecure = []string{"127.0.0.1:1"} }, control: "127.0.0.1:1/steading/devops:1.4.2", image: "127.0.0.1:1/globex/globex-devops:1.4.2", want: Inconclusive, message: "cannot reach the registry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.set(tc.auth, tc.fault)
			c := f.client()
			if tc.client != nil {
				tc.client(&c)
			}
			if tc.control == "" {
				tc.control = control
			}
			got := c.Probe(context.Background(), tc.control, tc.image)
			if diff := cmp.Diff(tc.want, got.Answer); diff != "" {
				t.Errorf("%s: -want +got\n%s%s", tc.reason, diff, got.Message)
			}
			if !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s: got message %q, want it to contain %q", tc.reason, got.Message, tc.message)
			}
			if strings.Contains(got.Message, password) {
				t.Errorf("the message tells the password: %s", got.Message)
			}
		})
	}
}

func untrustedRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // Of handshakes that fail, as they are to.
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// tokenNotFoundFor answers 404 when a token for a repository of this name is asked for.
func tokenNotFoundFor(repository string) fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" && strings.Contains(r.URL.RawQuery, repository) {
			registryError(w, http.StatusNotFound, "NAME_UNKNOWN")
			return true
		}
		return false
	}
}

func TestCredentialGoesToItsOwnHostOnly(t *testing.T) {
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth := r.Header.Get("Authorization"); auth != "" {
			stolen = append(stolen, auth)
		}
		_, _ = w.Write([]byte(`{"token":"robot"}`))
	}))
	defer thief.Close()
	thiefHost := strings.TrimPrefix(thief.URL, "http://")

	f := newRegistry(t)
	f.pushImage(t, "steading/devops")
	c := f.client()
	c.Insecure = append(c.Insecure, thiefHost)
	image := f.host + "/steading/devops:1.4.2"

	// go-containerregistry refuses token services on private addresses, so that this one is reached by name.
	f.realm = strings.Replace(thief.URL, "127.0.0.1", "localhost", 1) + "/token"
	c.Insecure = append(c.Insecure, strings.Replace(thiefHost, "127.0.0.1", "localhost", 1))
	f.set("bearer", nil)
	c.Probe(context.Background(), image, image)

	f.set("basic", on("/manifests/", redirect(thief.URL)))
	c.Probe(context.Background(), image, image)

	if len(stolen) > 0 {
		t.Errorf("the credential went to another host: %q", stolen)
	}
	sent := false
	for _, r := range f.requests() {
		_, p, ok := r.BasicAuth()
		sent = sent || ok && p == password
	}
	if !sent {
		t.Error("the credential was never sent to its own host, so that the test shows nothing")
	}
}

func TestParseCredentials(t *testing.T) {
	cases := map[string]struct {
		reason string
		json   string
		want   Credentials
		err    bool
	}{
		"Password":  {reason: "user and password as they are", json: `{"auths":{"ghcr.io":{"username":"u","password":"p"}}}`, want: Credentials{"ghcr.io": {Username: "u", Password: "p"}}},
		"Auth":      {reason: "base64 of user:password", json: `{"auths":{"ghcr.io":{"auth":"dTpwOnE="}}}`, want: Credentials{"ghcr.io": {Username: "u", Password: "p:q"}}},
		"Host":      {reason: "scheme, path and case of a key do not matter", json: `{"auths":{"https://GHCR.io/v2/":{"username":"u","password":"p"}}}`, want: Credentials{"ghcr.io": {Username: "u", Password: "p"}}},
		"DockerHub": {reason: "Docker Hub has many names", json: `{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`, want: Credentials{"index.docker.io": {Username: "u", Password: "p"}}},
		"Half":      {reason: "half-filled entries are ignored", json: `{"auths":{"a.io":{"username":"u"},"b.io":{"auth":"dTo="},"c.io":{"auth":"%%"}}}`, want: Credentials{}},
		"Broken":    {reason: "what is no JSON is an error that does not quote it", json: `s3cret`, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCredentials([]byte(tc.json))
			if (err != nil) != tc.err {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if err != nil && strings.Contains(err.Error(), tc.json) {
				t.Errorf("the error quotes the credential: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
