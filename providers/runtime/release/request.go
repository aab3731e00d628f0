package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// digest of what is asked for, a component's with the versions of what its values come from. Two requests with one digest are one request: the second changes nothing. It is made of
// what the spec says, not of what this version of the provider makes of it, so that a new provider redeploys nobody.
func digest(p v1alpha1.ReleaseParameters, from ...string) string {
	if p.Component != nil {
		return digestOf(componentRequestOf(p, from))
	}
	type request struct {
		UID        string          `json:"uid"`
		Chart      string          `json:"chart"`
		Version    string          `json:"version"`
		Power      steading.Power  `json:"power"`
		CPU        int64           `json:"cpu"`
		Memory     int64           `json:"memory"`
		Storage    int64           `json:"storage"`
		Docker     bool            `json:"docker"`
		Registry   string          `json:"registry"`
		PullSecret bool            `json:"pullSecret"`
		Values     json.RawMessage `json:"values,omitempty"`
	}
	r := request{
		UID:     string(p.Identity.UID),
		Chart:   p.Chart.Digest,
		Version: p.Version,
		Power:   p.Power,
		CPU:     p.Caps.CPU.MilliValue(),
		Memory:  p.Caps.Memory.Value(),
		Storage: p.Caps.Storage.Value(),
		Docker:  p.Docker,
	}
	if p.Registry != nil {
		r.Registry, r.PullSecret = p.Registry.Prefix, p.Registry.PullSecretRef != nil
	}
	if p.Values != nil {
		r.Values = p.Values.Raw
	}
	return digestOf(r)
}

func digestOf(request any) string {
	raw, err := json.Marshal(request)
	if err != nil {
		// Only values that are not JSON. The API server takes none.
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	// It is kept as a label of Helm's record, which takes at most 63 characters.
	return hex.EncodeToString(sum[:16])
}

// values for the runtime chart.
func values(p v1alpha1.ReleaseParameters, image string) (map[string]any, error) {
	derived := map[string]any{
		"tenant":      p.Identity.Tenant,
		"environment": p.Identity.Environment,
		"namespace":   p.Namespace,
		"version":     p.Version,
		"image":       image,
		"stopped":     p.Power == steading.PowerStopped,
		"docker":      map[string]any{"enabled": p.Docker},
		"caps": map[string]any{
			"cpu":     p.Caps.CPU.String(),
			"memory":  p.Caps.Memory.String(),
			"storage": p.Caps.Storage.String(),
		},
	}
	if p.Registry != nil && p.Registry.PullSecretRef != nil {
		derived["imagePullSecrets"] = []any{map[string]any{"name": names.PullSecret}}
	}
	if p.Values == nil || len(p.Values.Raw) == 0 {
		return derived, nil
	}
	given := map[string]any{}
	if err := json.Unmarshal(p.Values.Raw, &given); err != nil {
		return nil, errors.Wrap(err, "cannot read values")
	}
	return chartutil.CoalesceTables(given, derived), nil
}
