package process

import (
	"fmt"
	"net"
)

// FreeAddress returns a loopback address that nobody listens on now, for a child
// that is to be told where to listen.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
