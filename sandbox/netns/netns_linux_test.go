package netns

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

func newNamespace(t *testing.T) *Namespace {
	t.Helper()
	need.Root(t)
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	// Loopback is down at first: bring it up.
	err = n.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		lo.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func here(t *testing.T) string {
	t.Helper()
	where, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return where
}

func TestDoMovesOnlyItsThread(t *testing.T) {
	n := newNamespace(t)
	before := here(t)
	for range 50 {
		var there string
		err := n.Do(func() (err error) {
			there, err = os.Readlink("/proc/thread-self/ns/net")
			return err
		})
		if err != nil || there == before {
			t.Fatalf("in the namespace it is %s (%v), outside %s", there, err, before)
		}
	}
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if here(t) != before || len(tasks) == 0 {
		t.Errorf("the process is in %s, want %s", here(t), before)
	}
}

func TestRelayForwardsBothDirectionsAndEnds(t *testing.T) {
	n := newNamespace(t)
	inside, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	go func() { // an echo that answers at the end of the input
		for {
			conn, err := inside.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn)
				_, _ = conn.Write(append([]byte("got "), text...))
			}()
		}
	}()
	if _, err := net.Dial("tcp", inside.Addr().String()); err == nil {
		t.Error("a listener in the namespace is reachable from outside")
	}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay := NewRelay(outside, func(ctx context.Context) (net.Conn, error) { return n.Dial(ctx, inside.Addr().String()) })
	conn, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "got hello" {
		t.Errorf("got %q (%v)", got, err)
	}
	open, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.Write([]byte("and")); err != nil {
		t.Fatal(err)
	}
	if err := relay.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(open); err == nil && len(got) > 0 {
		t.Errorf("a relay that is closed gave %q", got)
	}
	if _, err := net.Dial("tcp", outside.Addr().String()); err == nil {
		t.Error("a relay that is closed still listens")
	}
}
