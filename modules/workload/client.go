package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Kinds of failures.
const (
	refused     = "refused"
	reset       = "reset"
	cutShort    = "eof" // the connection ended before the answer did
	timedOut    = "timeout"
	unreachable = "unreachable"
	badStatus   = "status"
	otherwise   = "other"
)

// statusError is an answer that is not 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// kindOf says what kind of failure an error is.
func kindOf(err error) string {
	var status statusError
	var network net.Error
	switch {
	case errors.As(err, &status):
		return badStatus
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return cutShort
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return unreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return timedOut
	default:
		return otherwise
	}
}

// client asks one thing after the other. It is a client that repeats nothing:
// what net/http's would try again unseen is a failure here.
type client struct {
	target  *url.URL
	request []byte
	keep    bool          // keeps its connection
	quiet   time.Duration // the longest that nothing may come
	dialer  net.Dialer
	// connected hears of every connection that is tried; it may be nil.
	connected func()

	conn net.Conn // nil: none open
	read *bufio.Reader
}

func newClient(target *url.URL, keep bool, quiet time.Duration) *client {
	text := "GET " + target.RequestURI() + " HTTP/1.1\r\nHost: " + target.Host + "\r\n"
	if !keep {
		text += "Connection: close\r\n"
	}
	return &client{target: target, request: []byte(text + "\r\n"), keep: keep, quiet: quiet, dialer: net.Dialer{Timeout: quiet}}
}

// ask asks once. The error says at which step it broke: connect, write or read.
// It is given up when ctx ends.
func (c *client) ask(ctx context.Context) error {
	if c.conn == nil {
		if c.connected != nil {
			c.connected()
		}
		conn, err := c.dialer.DialContext(ctx, "tcp", hostPort(c.target))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		c.conn, c.read = conn, bufio.NewReader(patient{conn, c.quiet})
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	again, err := c.exchange()
	if !stop() || !again {
		c.close()
	}
	return err
}

// exchange sends the request, reads the answer, and reports whether the
// connection serves for another.
func (c *client) exchange() (bool, error) {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.quiet)); err != nil {
		return false, fmt.Errorf("write: %w", err)
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return false, fmt.Errorf("write: %w", err)
	}
	again, err := c.answer()
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	return again, nil
}

// answer reads one whole.
func (c *client) answer() (bool, error) {
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusOK {
		return false, statusError(resp.StatusCode)
	}
	return c.keep && !resp.Close, nil
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is in it any more that anybody wants
	}
	c.conn, c.read = nil, nil
}

// patient is a connection whose every read waits so long and no longer.
type patient struct {
	net.Conn
	quiet time.Duration
}

// Read reads what comes in time.
func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.quiet)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func hostPort(u *url.URL) string {
	if strings.Contains(u.Host, ":") {
		return u.Host
	}
	return u.Host + ":80"
}
