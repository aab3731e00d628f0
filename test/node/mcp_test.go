//go:build node

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/test/harness"
)

// told is what a runtime tells of itself by MCP.
type told struct {
	Tenant      string `json:"tenant"`
	Environment string `json:"environment"`
	Namespace   string `json:"namespace"`
	Version     string `json:"version"`
}

// wantTold waits until the runtime answers through its Service, from the machine, as that environment at that version.
func wantTold(t *testing.T, tenant, environment, version string) {
	t.Helper()
	want := told{Tenant: tenant, Environment: environment, Namespace: names.EnvironmentNamespace(tenant, environment), Version: version}
	harness.Eventually(t, "the runtime of "+want.Namespace+" answers", func(ctx context.Context) error {
		have, err := ask(ctx, tenant, want.Namespace)
		if err != nil {
			return err
		}
		if have != want {
			return fmt.Errorf("it says %+v, want %+v", have, want)
		}
		return nil
	})
}

// ask a runtime who it is.
func ask(ctx context.Context, tenant, namespace string) (told, error) {
	s := &corev1.Service{}
	if err := suite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: tenant + "-mcp"}, s); err != nil {
		return told{}, err
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + s.Spec.ClusterIP + "/mcp", MaxRetries: -1}, nil)
	if err != nil {
		return told{}, err
	}
	defer session.Close() //nolint:errcheck // It keeps no sessions.
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "environment"})
	if err != nil {
		return told{}, err
	}
	if r.IsError {
		return told{}, fmt.Errorf("it failed: %v", r.Content)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return told{}, err
	}
	have := told{}
	return have, json.Unmarshal(b, &have)
}
