package kit_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/providers/internal/kit"
)

func TestCheckAmounts(t *testing.T) {
	cases := map[string]struct{ reason, obj, want string }{
		"Billions":  {"It is compared as a number of a billion digits.", `{spec: {containers: [{resources: {limits: {cpu: "1e999999999"}}}]}}`, "spec.containers[0].resources.limits.cpu"},
		"Billionth": {"It is read as a number of a billion digits.", `{spec: {resources: {requests: {storage: "1E-999999999"}}}}`, "spec.resources.requests.storage"},
		"Signed":    {"Signs are read, too.", `{sizeLimit: "+1e+99999"}`, "sizeLimit"},
		"Spaces":    {"The reader of amounts trims them.", `{divisor: " 1e99999\n"}`, "divisor"},
		"Scaler":    {"What a scaler aims at is an amount below another name.", `{metrics: [{resource: {target: {averageValue: "1e99999"}}}]}`, "metrics[0].resource.target.averageValue"},
		"Digits":    {"Digits alone do it as well.", `{limits: {cpu: "` + strings.Repeat("9", 100000) + `"}}`, "limits.cpu"},
		"Usual":     {"Nothing is said about what can be counted with.", `{limits: {cpu: 500m, memory: 1.5Gi, storage: 8E, other: "1e30"}, requests: {cpu: 2, memory: 1.5}}`, ""},
		"Elsewhere": {"An abbreviated commit is no amount.", `{env: [{name: COMMIT, value: "1e23456"}], data: {text: "1e999999999"}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.obj), &obj); err != nil {
				t.Fatal(err)
			}
			err := kit.CheckAmounts(obj)
			if (tc.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tc.want+" is too large or too small") {
				t.Errorf("%s have %v, want %q named", tc.reason, err, tc.want)
			}
		})
	}
}
