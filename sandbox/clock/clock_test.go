//go:build linux && amd64

package clock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the program whose clock the tests change: it prints its wall clock and how much time
// has passed.
func TestMain(m *testing.M) {
	if os.Getenv("CLOCK_TEST_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	began := time.Now()
	for range 8 { // threads that read the clock all the time
		go func() {
			for {
				_ = time.Now().UnixNano()
			}
		}()
	}
	for {
		now := time.Now()
		fmt.Println(now.UnixNano(), int64(now.Sub(began)))
		time.Sleep(5 * time.Millisecond)
	}
}

// program is a process that prints its clock.
type program struct {
	*exec.Cmd
	// off is how wrong its clock is, and passed is its monotonic clock.
	off, passed atomic.Int64
}

func start(t *testing.T) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), "CLOCK_TEST_PROGRAM=1", "GOMAXPROCS=4")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			wall, passed, _ := strings.Cut(lines.Text(), " ")
			at, _ := strconv.ParseInt(wall, 10, 64)
			since, _ := strconv.ParseInt(passed, 10, 64)
			p.off.Store(at - time.Now().UnixNano())
			p.passed.Store(since)
		}
	}()
	return p
}

// until waits until the clock is wrong by at least and at most.
func (p *program) until(t *testing.T, least, most time.Duration) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if off := time.Duration(p.off.Load()); p.passed.Load() > 0 && off >= least && off <= most {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the clock is wrong by %s, want %s to %s", time.Duration(p.off.Load()), least, most)
		}
	}
}

const (
	// near is what a busy machine may delay.
	near = 20 * time.Second
	far  = time.Hour
)

func TestNumbersAreBehindTheCode(t *testing.T) {
	t.Parallel()
	if len(code) > untilAt || code[0x70] != 0x31 || code[0x72] != 0xc3 || len(Error{}.numbers()) != size-untilAt {
		t.Errorf("%d bytes of code, and its end is % x", len(code), code[0x70:])
	}
}

func TestStepAndBack(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.until(t, -near, near)
	for _, step := range []time.Duration{far, -far, 3 * far} {
		before := p.passed.Load()
		if err := Set(p.Process, Error{Step: step, Until: time.Now().Add(far)}); err != nil {
			t.Fatal(err)
		}
		p.until(t, step-near, step+near)
		if grown := time.Duration(p.passed.Load() - before); grown < 0 || grown > far/2 {
			t.Errorf("the monotonic clock went on by %s with a step of %s", grown, step)
		}
	}
	if err := Clear(p.Process); err != nil {
		t.Fatal(err)
	}
	p.until(t, -near, near)
}

func TestDriftGrows(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.until(t, -near, near)
	for _, rate := range []time.Duration{time.Hour, -time.Hour} {
		if err := Set(p.Process, Error{Rate: rate, From: time.Now(), Until: time.Now().Add(far)}); err != nil {
			t.Fatal(err)
		}
		if rate > 0 {
			p.until(t, 2*far, 1000*far)
		} else {
			p.until(t, -1000*far, -2*far)
		}
	}
}

func TestEndsAtItsTime(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.until(t, -near, near)
	if err := Set(p.Process, Error{Step: far, Until: time.Now().Add(500 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	p.until(t, far-near, far+near)
	p.until(t, -near, near)
}

// TestStoppedProcessStaysStopped: another fault has stopped it, and continues it.
func TestStoppedProcessStaysStopped(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.until(t, -near, near)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	v, err := open(p.Process)
	if err != nil {
		t.Fatal(err)
	}
	defer v.mem.Close()
	stopped := func() bool {
		all, err := v.states("T")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for !stopped() {
		time.Sleep(stopPoll)
	}
	if err := Set(p.Process, Error{Step: far, Until: time.Now().Add(far)}); err != nil {
		t.Fatal(err)
	}
	if !stopped() {
		t.Error("the process was continued")
	}
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.until(t, far-near, far+near)
}

func TestEndedProcess(t *testing.T) {
	t.Parallel()
	p := start(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if err := Set(p.Process, Error{Step: far}); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("error %v", err)
	}
	if err := Clear(p.Process); err != nil {
		t.Error(err)
	}
}
