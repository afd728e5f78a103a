package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/lifeboat-dev/lifeboat/sandbox/osthread"
)

// Namespace is a network namespace, held open. It is safe for concurrent use.
type Namespace struct {
	file *os.File
}

// Close closes it. The namespace ends with the last process in it.
func (n *Namespace) Close() error { return n.file.Close() }

// FD is its open file descriptor.
func (n *Namespace) FD() int { return int(n.file.Fd()) }

// Do runs f in the namespace, on a separate thread. Goroutines that f starts are not in the namespace.
func (n *Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := n.Enter(); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a separate thread.
func onThread(f func() error) error {
	done := make(chan error, 1)
	osthread.Spend(func() { done <- f() })
	return <-done
}

// ListenPacket listens on a UDP address in the namespace.
func (n *Namespace) ListenPacket(address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := n.Do(func() error {
		var err error
		c, err = net.ListenPacket("udp4", address)
		return err
	})
	return c, err
}

// Listen listens on a TCP address in the namespace.
func (n *Namespace) Listen(address string) (*net.TCPListener, error) {
	var l *net.TCPListener
	err := n.Do(func() error {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			return err
		}
		tcp, ok := listener.(*net.TCPListener)
		if !ok {
			return errors.Join(fmt.Errorf("listening gave a %T", listener), listener.Close())
		}
		l = tcp
		return nil
	})
	return l, err
}

// Dial connects from within the namespace to a TCP address with a numeric host.
func (n *Namespace) Dial(ctx context.Context, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() error {
		var d net.Dialer
		var err error
		conn, err = d.DialContext(ctx, "tcp4", address)
		return err
	})
	return conn, err
}

// Relay forwards connections of a listener to new connections of dial.
type Relay struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	ctx      context.Context //nolint:containedctx // cancels dials; set once
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// NewRelay forwards connections until Close.
func NewRelay(l net.Listener, dial func(context.Context) (net.Conn, error)) *Relay {
	r := &Relay{listener: l, dial: dial}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.running.Go(r.accept)
	return r
}

// Close closes the listener and all connections, and returns when they are.
func (r *Relay) Close() error {
	r.cancel()
	err := r.listener.Close()
	r.running.Wait()
	return err
}

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.running.Go(func() { r.forward(conn) })
	}
}

// forward forwards one connection in both directions. If dial fails, it closes the connection, as a
// dead server would.
func (r *Relay) forward(from net.Conn) {
	defer from.Close()
	to, err := r.dial(r.ctx)
	if err != nil {
		return
	}
	defer to.Close()
	stop := context.AfterFunc(r.ctx, func() { from.Close(); to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(to, from) })
	both.Go(func() { copyHalf(from, to) })
	both.Wait()
}

// copyHalf forwards one direction and its end. An error ends both.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	to.Close()
	from.Close()
}
