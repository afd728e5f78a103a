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
	cutShort    = "eof" // the connection ended before the response
	timedOut    = "timeout"
	unreachable = "unreachable"
	badStatus   = "status"
	otherwise   = "other"
)

// statusError is a response with a status other than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// failureKind classifies an error.
func failureKind(err error) string {
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

// client sends one request after the other. It never retries: a request that
// net/http's client would silently retry is a failure here.
type client struct {
	target  *url.URL
	request []byte
	keep    bool          // keep-alive
	timeout time.Duration // maximum time without data
	dialer  net.Dialer
	// connected is called for every connection attempt; it may be nil.
	connected func()

	conn net.Conn // nil if there is none
	read *bufio.Reader
}

func newClient(target *url.URL, keep bool, timeout time.Duration) *client {
	text := "GET " + target.RequestURI() + " HTTP/1.1\r\nHost: " + target.Host + "\r\n"
	if !keep {
		text += "Connection: close\r\n"
	}
	return &client{target: target, request: []byte(text + "\r\n"), keep: keep, timeout: timeout, dialer: net.Dialer{Timeout: timeout}}
}

// do sends one request. The error begins with the failed step: connect, write or
// read. It is aborted when ctx ends.
func (c *client) do(ctx context.Context) error {
	if c.conn == nil {
		if c.connected != nil {
			c.connected()
		}
		conn, err := c.dialer.DialContext(ctx, "tcp", hostPort(c.target))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		c.conn, c.read = conn, bufio.NewReader(timeoutConn{conn, c.timeout})
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	again, err := c.exchange()
	if !stop() || !again {
		c.close()
	}
	return err
}

// exchange sends the request, reads the response, and reports whether the connection
// can be reused.
func (c *client) exchange() (bool, error) {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
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

// answer reads one response.
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
		_ = c.conn.Close() // no pending data is needed
	}
	c.conn, c.read = nil, nil
}

// timeoutConn is a connection with a timeout for each read.
type timeoutConn struct {
	net.Conn
	timeout time.Duration
}

// Read reads with the timeout.
func (p timeoutConn) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.timeout)); err != nil {
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
