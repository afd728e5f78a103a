package login1

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// errInProgress is logind's error for a lock that is requested too late.
var errInProgress = errors.New("the operation that the inhibitor would delay is in progress")

// Service is a bus with logind on a socket. It is safe for concurrent use.
type Service struct {
	listener *net.UnixListener
	delayMax time.Duration
	serving  sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	conns     map[*conn]bool
	locks     sync.WaitGroup // one for each held lock; none is added while preparing
	preparing bool
	closed    bool
}

// Listen opens the bus on a socket with this path. A shutdown waits for locks at most
// delayMax, which is InhibitDelayMaxSec of logind.conf(5).
func Listen(path string, delayMax time.Duration) (*Service, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("opening the system bus: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening the system bus: %w", err)
	}
	s := &Service{listener: l, delayMax: delayMax, conns: map[*conn]bool{}}
	s.serving.Go(s.accept)
	return s, nil
}

func (s *Service) accept() {
	for {
		socket, err := s.listener.AcceptUnix()
		if err != nil {
			return // the listener was closed
		}
		c := &conn{service: s, socket: socket}
		if !s.add(c) {
			socket.Close()
			return
		}
		s.serving.Go(func() {
			defer s.drop(c)
			_ = c.serve() // the client notices the closed connection
		})
	}
}

func (s *Service) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Service) drop(c *conn) {
	c.socket.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// lock returns a file that holds a delay lock. The lock is released when no process
// has the file open.
func (s *Service) lock() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.preparing {
		return nil, errInProgress
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating a lock: %w", err)
	}
	s.locks.Go(func() {
		defer r.Close()
		_, _ = r.Read(make([]byte, 1)) // returns when the last writer has closed the pipe
	})
	return w, nil
}

// PrepareForShutdown sends the signal to all clients, and waits until they have
// released their locks. It reports whether they did so before the maximum delay was
// over and before ctx ended.
func (s *Service) PrepareForShutdown(ctx context.Context) (released bool) {
	ctx, cancel := context.WithTimeout(ctx, s.delayMax)
	defer cancel()
	s.mu.Lock()
	s.preparing = true
	var clients []*conn
	for c := range s.conns {
		clients = append(clients, c)
	}
	s.mu.Unlock()
	for _, c := range clients {
		_ = c.send(prepareForShutdown(true)) // a disconnected client holds no lock
	}
	done := make(chan struct{})
	go func() {
		s.locks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close closes all connections. Clients keep their locks.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.socket.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.serving.Wait()
	return err
}
