// Command probe tries what a pod may try, and says as its pod's last message what came of each, in a line:
//
//	ADDRESS:PORT   to connect there
//	ingress=HOST   to make a route for a host in its own namespace, as its own account, without it being kept
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// patience with an address: what drops packets never answers.
const patience = 3 * time.Second

func main() {
	var lines strings.Builder
	for _, what := range os.Args[1:] {
		if err := try(what); err != nil {
			fmt.Fprintf(&lines, "%s refused: %v\n", what, err)
		} else {
			fmt.Fprintf(&lines, "%s done\n", what)
		}
	}
	if err := os.WriteFile("/dev/termination-log", []byte(lines.String()), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func try(what string) error {
	if host, ok := strings.CutPrefix(what, "ingress="); ok {
		return makeIngress(host)
	}
	host, port, err := net.SplitHostPort(what)
	if err != nil {
		return err
	}
	// A question for a name may get lost, and is asked again after longer than our patience.
	addresses, err := net.DefaultResolver.LookupHost(context.Background(), host)
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", net.JoinHostPort(addresses[0], port))
	if err != nil {
		return err
	}
	return c.Close()
}
