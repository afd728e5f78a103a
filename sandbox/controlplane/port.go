package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"
)

// Ports are below the range for outgoing connections (Linux: from 32768), so that no such
// connection holds the port at a restart.
const (
	firstPort = 20000
	lastPort  = 29999
)

// loopback is the only address the sandbox listens on.
const loopback = "127.0.0.1"

// listenAnywhere listens on a free loopback port.
func listenAnywhere() (*net.TCPListener, error) {
	var last error
	for range 50 {
		l, err := listenTCP(firstPort + rand.IntN(lastPort-firstPort+1))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("finding a free port between %d and %d: %w", firstPort, lastPort, last)
}

// listenAgain listens on the same port, and waits briefly while another process holds it.
func (c *ControlPlane) listenAgain(ctx context.Context) (*net.TCPListener, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		l, err := c.listenOn(c.port)
		if err == nil {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("taking port %d again: %w", c.port, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func listenTCP(port int) (*net.TCPListener, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listening gave a %T", l), l.Close())
	}
	return tcp, nil
}

// socket turns a listener into a file for a child to inherit, and closes the listener: the port
// stays reserved, and is released when the child ends.
func socket(l *net.TCPListener) (*os.File, error) {
	defer l.Close()
	f, err := l.File()
	if err != nil {
		return nil, fmt.Errorf("handing over the listening socket: %w", err)
	}
	return f, nil
}
