package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

func TestExitedProgramIsRestarted(t *testing.T) {
	dir := t.TempDir()
	pids := make(chan int, 10)
	k := &supervisor{
		name: "sleep", log: slog.New(slog.DiscardHandler), started: func(pid int) { pids <- pid },
		launch: func(ctx context.Context) (*process.Process, error) {
			return process.Start(ctx, process.Options{Name: "sleep", Path: "/bin/sleep", Args: []string{"60"}, LogFile: filepath.Join(dir, "log")})
		},
	}
	if err := k.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.stop(); err != nil {
			t.Error(err)
		}
		if _, err := k.current(); err == nil {
			t.Error("it is kept after stop")
		}
		if err := k.kill(); err == nil {
			t.Error("what was stopped could be killed")
		}
	}()
	first := <-pids
	if err := k.start(t.Context()); err != nil || len(pids) != 0 {
		t.Errorf("starting it again: %v, %d more processes", err, len(pids))
	}
	for range 2 {
		if err := k.crash(); err != nil {
			t.Fatal(err)
		}
		if err := k.crash(); err != nil && !errors.Is(err, ErrRestarting) {
			t.Errorf("killing what is killed: %v", err)
		}
		select {
		case pid := <-pids:
			if pid == first {
				t.Error("the same process again")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it was not started again")
		}
	}
}

func TestClosedGateCutsConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: listener, through: map[net.Conn]struct{}{}}
	entered := make(chan struct{}, 1)
	var slow atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			entered <- struct{}{}
			<-r.Context().Done()
		}
	}))
	server.Listener.Close()
	server.Listener = g
	server.Start()
	defer server.Close()
	get := func() error {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	polling := make(chan error, 1)
	go func() { polling <- get() }()
	<-entered
	g.shut(true)
	if err := <-polling; err == nil {
		t.Error("a request under way was answered after the gate was shut")
	}
	slow.Store(false)
	if err := get(); err == nil {
		t.Error("a new request came through")
	}
	g.shut(false)
	if err := get(); err != nil {
		t.Errorf("after it was opened: %v", err)
	}
}

func TestMinor(t *testing.T) {
	if got := minor("v1.36.3"); got != "1.36" {
		t.Errorf("minor() = %s", got)
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	for _, name := range []string{"Up", "a/b", "..", "a-very-long-name-that-is-over-the-limit"} {
		if _, err := New(Options{Name: name}); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	for _, o := range []Options{{KarpenterQueue: "karpenter"}, {Karpenter: true, KarpenterOwnQueue: true}, {OlderKarpenter: true}} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "needs Karpenter") {
			t.Errorf("of %+v came %v", o, err)
		}
	}
	if _, err := New(Options{Disks: true}); err == nil || !strings.Contains(err.Error(), "RealNodes") {
		t.Errorf("disks of simulated instances gave %v", err)
	}
}
