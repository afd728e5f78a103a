package login1

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// timeout limits waits for events that must happen.
const timeout = 10 * time.Second

func listen(t *testing.T, delayMax time.Duration) (*Service, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dbus", "socket")
	s, err := Listen(path, delayMax)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// client is a connection like the kubelet's, with the signals that it receives.
func client(t *testing.T, path string) (dbus.BusObject, <-chan *dbus.Signal) {
	t.Helper()
	c, err := dbus.Connect("unix:path=" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	err = c.AddMatchSignal(dbus.WithMatchInterface(manager), dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(loginPath))
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan *dbus.Signal, 1)
	c.Signal(signals)
	return c.Object(loginName, loginPath), signals
}

func inhibit(t *testing.T, o dbus.BusObject) int {
	t.Helper()
	var fd uint32
	if err := o.Call(manager+".Inhibit", 0, "shutdown", "kubelet", "test", "delay").Store(&fd); err != nil {
		t.Fatal(err)
	}
	return int(fd)
}

func release(t *testing.T, fd int) {
	t.Helper()
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
}

// prepare calls PrepareForShutdown with a limit.
func prepare(t *testing.T, s *Service, most time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return s.PrepareForShutdown(ctx)
}

func begins(t *testing.T, signals <-chan *dbus.Signal) {
	t.Helper()
	select {
	case got := <-signals:
		if got.Name != manager+".PrepareForShutdown" || got.Path != loginPath || len(got.Body) != 1 || got.Body[0] != true {
			t.Errorf("the signal is %+v, want PrepareForShutdown(true)", got)
		}
	case <-time.After(timeout):
		t.Fatal("no signal came")
	}
}

func TestInhibitDelayMaxUSec(t *testing.T) {
	_, path := listen(t, 150*time.Second)
	o, _ := client(t, path)
	got, err := o.GetProperty(manager + ".InhibitDelayMaxUSec")
	if err != nil {
		t.Fatal(err)
	}
	if got.Value() != uint64(150_000_000) {
		t.Errorf("InhibitDelayMaxUSec = %v, want 150000000 as a uint64", got)
	}
}

func TestShutdownWaitsForEveryLock(t *testing.T) {
	s, path := listen(t, timeout)
	first, signals := client(t, path)
	second, _ := client(t, path)
	one, other := inhibit(t, first), inhibit(t, second)
	released := make(chan bool, 1)
	go func() { released <- s.PrepareForShutdown(context.Background()) }()
	begins(t, signals)
	release(t, one)
	if prepare(t, s, 50*time.Millisecond) {
		t.Error("the shutdown goes on while a lock is held")
	}
	release(t, other)
	if !<-released {
		t.Error("the shutdown has waited to the end, and no lock is held")
	}
}

// A lock is a file: it ends with the last process that has it open, not with the
// connection.
func TestLockSurvivesConnection(t *testing.T) {
	s, path := listen(t, timeout)
	c, err := dbus.Connect("unix:path=" + path)
	if err != nil {
		t.Fatal(err)
	}
	fd := inhibit(t, c.Object(loginName, loginPath))
	c.Close()
	if prepare(t, s, 50*time.Millisecond) {
		t.Error("the lock went with the connection")
	}
	release(t, fd)
	if !prepare(t, s, timeout) {
		t.Error("the lock is held, and its file is closed")
	}
}

func TestShutdownContinuesAfterTheDelay(t *testing.T) {
	s, path := listen(t, 10*time.Millisecond)
	o, signals := client(t, path)
	fd := inhibit(t, o)
	defer release(t, fd)
	if s.PrepareForShutdown(t.Context()) {
		t.Error("PrepareForShutdown() = true, want false: the lock is held")
	}
	begins(t, signals)
}

func TestShutdownWithoutLocksContinuesImmediately(t *testing.T) {
	s, _ := listen(t, time.Hour)
	if !s.PrepareForShutdown(t.Context()) {
		t.Error("PrepareForShutdown() = false, want true: there is no lock")
	}
}

func TestRefusals(t *testing.T) {
	s, path := listen(t, time.Hour)
	o, _ := client(t, path)
	refused := func(want, method string, args ...any) {
		t.Helper()
		var got dbus.Error
		if err := o.Call(method, 0, args...).Err; !errors.As(err, &got) || got.Name != want {
			t.Errorf("%s%v: error %v, want %s", method, args, err, want)
		}
	}
	refused(busName+".Error.UnknownMethod", "org.freedesktop.systemd1.Manager.KillUnit", "systemd-logind.service", "all", int32(1))
	refused(busName+".Error.UnknownProperty", busName+".Properties.Get", manager, "IdleHint")
	refused(busName+".Error.InvalidArgs", manager+".Inhibit", "sleep", "kubelet", "test", "delay")
	refused(busName+".Error.InvalidArgs", manager+".Inhibit", "shutdown", "kubelet", "test", "block")
	s.PrepareForShutdown(t.Context())
	refused(loginName+".OperationInProgress", manager+".Inhibit", "shutdown", "kubelet", "test", "delay")
}
