// Command crash is a runtime that does not come up: it says why, and ends.
package main

import "os"

func main() {
	_ = os.WriteFile("/dev/termination-log", []byte("cannot read the settings"), 0o600) // It is there, for everybody to write.
	os.Exit(3)
}
