package link

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a server that sends each line back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

// client is a connection through a link.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, l *Links, target string) *client {
	t.Helper()
	address, err := l.Address("a-b", target)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send() {
	c.t.Helper()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		c.t.Fatal(err)
	}
}

// gets reads an answer with a limit.
func (c *client) gets(within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.t.Fatal(err)
	}
	_, err := c.lines.ReadString('\n')
	return err
}

const long = time.Minute

func set(t *testing.T, dir string, c Condition) {
	t.Helper()
	c.Until = time.Now().Add(long)
	if err := (Conditions{"a-b": c}).Write(dir); err != nil {
		t.Fatal(err)
	}
}

// await waits until the link has a condition.
func await(t *testing.T, l *Links, ok func(Condition) bool) {
	t.Helper()
	for limit := time.Now().Add(long); ; time.Sleep(poll / 10) {
		l.mu.Lock()
		c := *l.all["a-b"].condition.Load()
		l.mu.Unlock()
		if ok(c) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the condition stays %+v", c)
		}
	}
}

func TestCutKeepsConnectionsAndData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := New(dir)
	t.Cleanup(l.Close)
	c := dial(t, l, echo(t))
	c.send()
	if err := c.gets(long); err != nil {
		t.Fatal(err)
	}

	set(t, dir, Condition{Cut: true})
	await(t, l, func(c Condition) bool { return c.Cut })
	c.send()
	if err := c.gets(5 * poll); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("while it is cut: %v, want nothing", err)
	}
	set(t, dir, Condition{})
	if err := c.gets(long); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestConditionEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := New(dir)
	t.Cleanup(l.Close)
	c := dial(t, l, echo(t))
	if err := (Conditions{"a-b": {Cut: true, Until: time.Now().Add(5 * poll)}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	c.send()
	if err := c.gets(long); err != nil { // no one removes the condition
		t.Error(err)
	}
}

func TestFlakyLinkResets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := New(dir)
	t.Cleanup(l.Close)
	c := dial(t, l, echo(t))
	set(t, dir, Condition{Flaky: true})
	if err := c.gets(long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read of an idle connection ends with %v, want a reset", err)
	}
}

func TestLatencyDelaysBothDirections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := New(dir)
	t.Cleanup(l.Close)
	c := dial(t, l, echo(t))
	const latency = 3 * poll
	set(t, dir, Condition{Latency: latency})
	await(t, l, func(c Condition) bool { return c.Latency == latency })
	began := time.Now()
	c.send()
	if err := c.gets(long); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*latency {
		t.Errorf("there and back in %s, want at least %s", took, 2*latency)
	}
}

func TestWrongFileIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(path(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("no error")
	}
}

// TestLostPacketsComeLate: nothing is missing, and some of it is late.
func TestLostPacketsComeLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := New(dir)
	t.Cleanup(l.Close)
	c := dial(t, l, echo(t))
	set(t, dir, Condition{Lossy: true})
	await(t, l, func(c Condition) bool { return c.Lossy })
	late := 0
	for range 50 {
		began := time.Now()
		c.send()
		if err := c.gets(long); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) >= retransmission {
			late++
		}
	}
	if late == 0 {
		t.Error("nothing of 50 lines was late")
	}
}
