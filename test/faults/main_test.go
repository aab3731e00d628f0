package faults

import (
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/faults/proxy"
	"github.com/steading-dev/steading/test/harness"
)

// crossplane and edge are, besides the provider, who has a front: the core's requests to the control plane, and everybody's
// to the edge.
const (
	crossplane = "crossplane"
	edge       = "edge"
)

var (
	suite harness.Suite
	// fronts of API servers: by the component that asks the control plane there, and that of the edge.
	fronts = map[string]*proxy.Proxy{}
)

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "faults", Edge: true, Front: front,
		// Who is killed is started again at once: that a lease is waited for is not what this is about.
		ProviderArgs: append(harness.NoPolling(), "--no-leader-elect"),
		// A life takes seconds here, and whoever died looks at everything anew. Crossplane's circuit breaker would take that
		// for a composite that never settles, and then hear of changes every thirty seconds only.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}

// front puts a proxy before the API server for provider and Crossplane. It is called once for each while the platform
// starts, in an order that the platform gives.
func front(namespace, account, server string, ca []byte) (string, []byte, error) {
	if account != platform.Provider && (namespace != local.CrossplaneNamespace || account != crossplane) {
		return server, ca, nil
	}
	p, err := proxy.Start(server, ca)
	if err != nil {
		return "", nil, err
	}
	fronts[account] = p
	return p.URL(), p.CA(), nil
}
