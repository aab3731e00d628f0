// Command probe tries to connect to each address that it is given, and says as its pod's last message what came of it: a line
// each, of the address and whether it was reached.
package main

import (
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
	for _, address := range os.Args[1:] {
		c, err := net.DialTimeout("tcp", address, patience) //nolint:gosec // Connecting to what it is told is what it is for.
		if err != nil {
			fmt.Fprintf(&lines, "%s refused: %v\n", address, err)
			continue
		}
		_ = c.Close()
		fmt.Fprintf(&lines, "%s reached\n", address)
	}
	if err := os.WriteFile("/dev/termination-log", []byte(lines.String()), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
