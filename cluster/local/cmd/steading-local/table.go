package main

import (
	"cmp"
	"fmt"
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
		fmt.Fprintln(w, "no claims")
		return
	}
	slices.SortStableFunc(claims, func(a, b platform.Claim) int { return cmp.Compare(a.Namespace, b.Namespace) })
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tCLAIM\tREADY\tPHASE\tREASON\tAGE")
	for _, c := range claims {
		fmt.Fprintf(t, "%s\t%s/%s\t%s\t%s\t%s\t%s\n", c.Namespace, strings.ToLower(c.GVK.Kind), c.Name, yes(c.Ready), c.Phase, c.Reason, age(c.Created))
	}
	_ = t.Flush()
}

func printComponents(w io.Writer, components []component) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "COMPONENT\tPID\tLOG")
	for _, c := range components {
		pid := "down"
		if c.Pid != 0 {
			pid = strconv.Itoa(c.Pid)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Name, pid, c.Log)
	}
	_ = t.Flush()
}

// printAccess says how a person gets at the platform.
func printAccess(w io.Writer, r *report) {
	fmt.Fprintf(w, "export KUBECONFIG=%s\n", r.Kubeconfig)
	if r.Edge != "" {
		fmt.Fprintf(w, "edge cluster: %s\n", r.Edge)
	}
	fmt.Fprintf(w, "kubectl of the same version: %s\n", r.Kubectl)
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
