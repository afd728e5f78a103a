package process

import (
	"fmt"
	"net"
)

// FreeAddress returns a loopback address that no process listens on now, for a child
// that gets its address as an argument.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
