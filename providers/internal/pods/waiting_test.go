package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPullFailure(t *testing.T) {
	const (
		image = "registry.local:5000/devops:9.9.9"
		want  = "container devops: cannot pull image " + image
	)
	cases := map[string]struct {
		reason  string
		message string
		want    string
	}{
		"Containerd": {
			reason:  "What the kubelet and containerd wrap the cause in is left out, and the image is named once.",
			message: `failed to pull and unpack image "` + image + `": failed to resolve reference "` + image + `": ` + image + ": not found",
			want:    want + ": not found",
		},
		"Kubelet": {
			reason: "The code of the call between them says nothing more.",
			message: `Failed to pull image "` + image + `": rpc error: code = NotFound desc = failed to pull and unpack image "` + image +
				`": failed to resolve reference "` + image + `": ` + image + ": not found",
			want: want + ": not found",
		},
		"BackOff": {
			reason:  "While it waits to try again the kubelet has what it waits for behind its own words.",
			message: `Back-off pulling image "` + image + `": ErrImagePull: rpc error: code = Unknown desc = failed to resolve image "` + image + `": dial tcp 192.0.2.1:443: i/o timeout`,
			want:    want + ": dial tcp 192.0.2.1:443: i/o timeout",
		},
		"BackOffOnly": {
			reason:  "It may have none.",
			message: `Back-off pulling image "` + image + `"`,
			want:    want,
		},
		"Silent": {reason: "It may say nothing.", want: want},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := corev1.ContainerStatus{Name: "devops", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: tc.message}}}
			if have := PullFailure(c); have != tc.want {
				t.Errorf("%s\nhave %s\nwant %s", tc.reason, have, tc.want)
			}
		})
	}
}
