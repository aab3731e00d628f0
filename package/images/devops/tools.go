package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/ptr"
)

// environmentURI is the resource that says the same as the tool environment.
const environmentURI = "steading://environment"

type nothing struct{}

// newMCP serves what an environment knows about itself. Requests are counted, not logged.
func newMCP(e *environment, m *metrics) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "steading-devops", Title: "Steading environment", Version: e.identity.Version}, &mcp.ServerOptions{
		Instructions: fmt.Sprintf("This is environment %s of tenant %s on the Steading platform, in namespace %s. Its tools only read.",
			e.identity.Environment, e.identity.Tenant, e.identity.Namespace),
	})
	s.AddReceivingMiddleware(m.count)
	addTool(s, "environment", "Environment", "Whose environment this is, its version, since when it runs and what it may use.", e.describe)
	addTool(s, "usage", "Usage", "What the environment's runtime uses right now of CPU, memory and its home volume.", e.usage)
	s.AddResource(&mcp.Resource{
		URI:         environmentURI,
		Name:        "environment",
		Title:       "Environment",
		Description: "Whose environment this is, its version, since when it runs and what it may use.",
		MIMEType:    "application/json",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		b, err := json.Marshal(e.describe())
		if err != nil {
			return nil, fmt.Errorf("cannot describe the environment: %w", err)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(b)}}}, nil
	})
	return s
}

// addTool that reads and takes no arguments.
func addTool[Out any](s *mcp.Server, name, title, description string, read func() Out) {
	t := &mcp.Tool{
		Name:        name,
		Title:       title,
		Description: description,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: ptr.To(false), OpenWorldHint: ptr.To(false)},
	}
	mcp.AddTool(s, t, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, Out, error) {
		return nil, read(), nil
	})
}
