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

// errInProgress is what logind says of a lock that is asked for too late.
var errInProgress = errors.New("the operation that the inhibitor would delay is in progress")

// Service is a bus on a socket, with logind on it. It is safe for concurrent use.
type Service struct {
	listener *net.UnixListener
	delayMax time.Duration
	serving  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	conns     map[*conn]bool
	locks     sync.WaitGroup // one for each lock that is held; none is added when preparing
	preparing bool
	closed    bool
}

// Listen opens the bus on a socket with that path. A shutdown waits for locks no longer
// than delayMax, which is InhibitDelayMaxSec of logind.conf(5).
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
			return // it was closed
		}
		c := &conn{service: s, socket: socket}
		if !s.add(c) {
			socket.Close()
			return
		}
		s.serving.Go(func() {
			defer s.drop(c)
			_ = c.serve() // the client sees that the connection ends
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

// lock returns a file that holds a delay lock. The lock is released when no process has
// that file open.
func (s *Service) lock() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.preparing {
		return nil, errInProgress
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a lock: %w", err)
	}
	s.locks.Go(func() {
		defer r.Close()
		_, _ = r.Read(make([]byte, 1)) // it ends when the last writer has closed it
	})
	return w, nil
}

// PrepareForShutdown tells all clients that the machine shuts down, and waits until they
// have released their locks. It reports whether they have before the longest delay was
// over, or ctx was done.
func (s *Service) PrepareForShutdown(ctx context.Context) (released bool) {
	ctx, cancel := context.WithTimeout(ctx, s.delayMax)
	defer cancel()
	s.mu.Lock()
	s.preparing = true
	var told []*conn
	for c := range s.conns {
		told = append(told, c)
	}
	s.mu.Unlock()
	for _, c := range told {
		_ = c.send(prepareForShutdown(true)) // one that is gone has nothing to delay
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

// Close ends all connections. Locks stay with those that hold them.
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
