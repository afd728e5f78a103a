package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// poll is how often the file is read.
	poll = 100 * time.Millisecond
	// resetOneIn is the chance, in each poll, that a flaky link resets a connection.
	resetOneIn = 10
	// lostOneIn is the chance that a lossy link loses a piece of data, or what TCP sends again for it.
	lostOneIn = 5
	// retransmission is the timeout of the first retransmission on Linux (TCP_RTO_MIN in include/net/tcp.h).
	// Each further one waits twice as long (RFC 6298, 5.5).
	retransmission = 200 * time.Millisecond
	// piece is the most that is forwarded at once.
	piece = 32 << 10
)

// Links are the links of one sandbox.
type Links struct {
	dir    string
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex // guards all
	all map[string]*link
}

// New makes a set without links, whose conditions are in a directory.
func New(dir string) *Links {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Links{dir: dir, ctx: ctx, cancel: cancel, all: map[string]*link{}}
	l.done.Go(l.watch)
	return l
}

// Close closes all links and their connections.
func (l *Links) Close() {
	l.cancel()
	l.mu.Lock()
	for _, one := range l.all {
		one.listener.Close()
		one.reset(func() bool { return true })
	}
	l.mu.Unlock()
	l.done.Wait()
}

// Address is the address of a link to a target, host:port. It opens the link if there is none of
// that name.
func (l *Links) Address(name, target string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.all[name]; one != nil {
		return one.listener.Addr().String(), nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("opening the link %s: %w", name, err)
	}
	one := &link{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	one.condition.Store(&Condition{})
	l.all[name] = one
	l.done.Go(func() { l.accept(one) })
	return listener.Addr().String(), nil
}

// watch applies the conditions of the file.
func (l *Links) watch() {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case now := <-tick.C:
			conditions, err := Read(l.dir)
			if err != nil {
				continue // the file of another version, or no rights: the links stay as they are
			}
			l.apply(conditions, now)
		}
	}
}

func (l *Links) apply(conditions Conditions, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, one := range l.all {
		c := conditions[name].at(now)
		one.condition.Store(&c)
		if c.Flaky {
			one.reset(func() bool { return rand.IntN(resetOneIn) == 0 })
		}
	}
}

// link is one proxy.
type link struct {
	listener  net.Listener
	target    string
	condition atomic.Pointer[Condition]

	mu    sync.Mutex // guards conns
	conns map[net.Conn]struct{}
}

// reset closes the connections that choose selects.
func (o *link) reset(choose func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for conn := range o.conns {
		if choose() {
			conn.Close()
		}
	}
}

func (o *link) add(conn net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns[conn] = struct{}{}
}

func (o *link) remove(conn net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, conn)
	conn.Close()
}

func (l *Links) accept(o *link) {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return // it is closed
		}
		o.add(conn)
		l.done.Go(func() {
			defer o.remove(conn)
			l.carry(o, conn)
		})
	}
}

// carry forwards a connection to the target and back, until either side closes it.
func (l *Links) carry(o *link, conn net.Conn) {
	if !l.pass(o) {
		return
	}
	var dialer net.Dialer
	to, err := dialer.DialContext(l.ctx, "tcp", o.target)
	if err != nil {
		return // the target is down: the client sees a closed connection
	}
	defer to.Close()
	stop := context.AfterFunc(l.ctx, func() { to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { l.copy(o, to, conn) })
	both.Go(func() { l.copy(o, conn, to) })
	both.Wait()
}

// copy forwards one direction. It closes both sides at an error, and passes on an orderly end.
func (l *Links) copy(o *link, to, from net.Conn) {
	buffer := make([]byte, piece)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.pass(o) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite() // the other side may have gone
			}
			return
		case err != nil:
			to.Close()
			return
		}
	}
}

// pass waits as long as the link keeps data back; false: the links are closed.
func (l *Links) pass(o *link) bool {
	if d := o.condition.Load().Latency; d > 0 && !l.wait(d) {
		return false
	}
	for late := retransmission; o.condition.Load().Lossy && rand.IntN(lostOneIn) == 0; late *= 2 {
		if !l.wait(late) {
			return false
		}
	}
	for o.condition.Load().Cut {
		if !l.wait(poll) {
			return false
		}
	}
	return l.ctx.Err() == nil
}

func (l *Links) wait(d time.Duration) bool {
	select {
	case <-l.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
