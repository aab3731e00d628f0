// Package pods says what pods wait for, in the words of whoever makes them wait and the same each time.
package pods

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pullReasons are the kubelet's for a container that waits for its image.
var pullReasons = []string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}

// NotPulled reports whether a container waits for an image that cannot be pulled as things are. [PullFailure] says why.
func NotPulled(c corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && slices.Contains(pullReasons, c.State.Waiting.Reason)
}

// pullSteps are what the kubelet and containerd wrap the cause of a failed pull in: the calls that passed it on, each with the
// image's name again.
var pullSteps = regexp.MustCompile(`rpc error: code = \w+ desc = |[Ff]ailed to (pull and unpack image|pull image|resolve reference|resolve image) "[^"]*": `)

// PullFailure says why an image is not pulled by a container that waits for it; the same whether the kubelet just failed or waits to try again, which it does in turns.
func PullFailure(c corev1.ContainerStatus) string {
	msg := c.State.Waiting.Message
	if _, cause, ok := strings.Cut(msg, ": ErrImagePull: "); ok {
		msg = cause
	}
	msg = strings.TrimPrefix(pullSteps.ReplaceAllString(msg, ""), c.Image+": ")
	if msg == "" || strings.HasPrefix(msg, "Back-off pulling image") {
		return fmt.Sprintf("container %s: cannot pull image %s", c.Name, c.Image)
	}
	return fmt.Sprintf("container %s: cannot pull image %s: %s", c.Name, c.Image, msg)
}

// Crash says why a container that waits to be started again crashed: how it ended last, not how often, nor for how long the
// kubelet waits.
func Crash(c corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if c.State.Waiting.Reason != "CrashLoopBackOff" || t == nil {
		return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", c.Name, c.State.Waiting.Reason, c.State.Waiting.Message), ": ")
	}
	msg := fmt.Sprintf("container %s keeps crashing: exit code %d", c.Name, t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		msg += " (" + t.Reason + ")"
	}
	if t.Message != "" {
		msg += ": " + strings.TrimSpace(t.Message)
	}
	return msg
}
