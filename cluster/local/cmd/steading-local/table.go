package main

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/steading-dev/steading/cluster/local/platform"
)

func printClaims(w io.Writer, claims []platform.Claim) {
	if len(claims) == 0 {
		line(w, "no claims")
		return
	}
	slices.SortStableFunc(claims, func(a, b platform.Claim) int { return cmp.Compare(a.Namespace, b.Namespace) })
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line(t, "NAMESPACE", "CLAIM", "READY", "PHASE", "REASON", "AGE")
	for _, c := range claims {
		line(t, c.Namespace, strings.ToLower(c.GVK.Kind)+"/"+c.Name, yes(c.Ready), c.Phase, c.Reason, age(c.Created))
	}
	_ = t.Flush()
}

func printComponents(w io.Writer, components []component) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line(t, "COMPONENT", "PID", "LOG")
	for _, c := range components {
		pid := "down"
		if c.Pid != 0 {
			pid = strconv.Itoa(c.Pid)
		}
		line(t, c.Name, pid, c.Log)
	}
	_ = t.Flush()
}

// printAccess says how a person gets at the platform.
func printAccess(w io.Writer, r *report) {
	line(w, "export KUBECONFIG="+r.Kubeconfig)
	if r.Edge != "" {
		line(w, "edge cluster: "+r.Edge)
	}
	line(w, "kubectl of the same version: "+r.Kubectl)
}

// line of a table. Nobody is left to tell when a terminal cannot be written to.
func line(w io.Writer, cells ...string) {
	_, _ = io.WriteString(w, strings.Join(cells, "\t")+"\n")
}

func age(created time.Time) string {
	if created.IsZero() {
		return ""
	}
	return duration.HumanDuration(time.Since(created))
}

func yes(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
