package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary run as the program itself.
const asProgram = "WORKLOAD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		// It exits when the test that holds the other end of the pipe ends.
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the program in a separate process.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *lines
	done chan error
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], args...), out: &lines{}, done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.out, os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) ends() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(20 * time.Second):
		p.t.Fatal("the program does not exit")
		return nil
	}
}

// lines collects the output of a process.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends output.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) entries(t *testing.T) []entry {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	return entriesOf(t, l.text.String())
}

func entriesOf(t *testing.T, text string) []entry {
	t.Helper()
	var out []entry
	for line := range strings.Lines(text) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func whats(entries []entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.What)
	}
	return out
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (p *program) isReady() {
	p.t.Helper()
	until(p.t, "the server to be ready", func() bool { return slices.Contains(whats(p.out.entries(p.t)), ready) })
}

func TestServerAtSIGTERM(t *testing.T) {
	tests := map[string]struct {
		answered bool // whether the open request was answered
		ends     bool
		journal  []string
	}{
		exitAtOnce: {answered: false, ends: true, journal: []string{started, ready, sigterm, exited}},
		graceful:   {answered: true, ends: true, journal: []string{started, ready, sigterm, lastRequest, exited}},
		ignore:     {answered: true, ends: false, journal: []string{started, ready, sigterm}},
	}
	for how, want := range tests {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			file := filepath.Join(t.TempDir(), "journal")
			p := start(t, "server", "--listen", address, "--at-sigterm", how, "--journal", file, "--pod", "web-1")
			p.isReady()
			body := begin(t, address, "/download?seconds=2")
			p.signal(syscall.SIGTERM)
			if _, err := io.Copy(io.Discard, body); (err == nil) != want.answered {
				t.Errorf("the request ended with %v", err)
			}
			if want.ends {
				if err := p.ends(); err != nil {
					t.Error(err)
				}
			} else if err := askOnce(address, "/"); err != nil {
				t.Errorf("after SIGTERM: %v", err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			entries := entriesOf(t, string(text))
			if got := whats(entries); !slices.Equal(got, want.journal) {
				t.Errorf("the journal has %q, want %q", got, want.journal)
			}
			if got := whats(p.out.entries(t)); !slices.Equal(got, want.journal) {
				t.Errorf("standard output has %q, want %q", got, want.journal)
			}
			for _, e := range entries {
				if e.Pod != "web-1" || time.Since(e.Time) > time.Minute {
					t.Errorf("entry %+v", e)
				}
			}
		})
	}
}

// begin sends a request, and returns when the response has begun.
func begin(t *testing.T, address, path string) io.Reader {
	t.Helper()
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

func askOnce(address, path string) error {
	c := newClient(&url.URL{Scheme: "http", Host: address, Path: path}, false, 5*time.Second)
	return c.do(context.Background())
}

func TestServerIsNotReadyBeforeReadyAfter(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	p := start(t, "server", "--listen", address, "--ready-after", "500ms", "--answer-time", "0s")
	until(t, "the server to listen", func() bool {
		err := askOnce(address, "/ready")
		if err != nil && failureKind(err) == badStatus {
			return true
		}
		return err == nil && t.Failed()
	})
	if err := askOnce(address, "/"); failureKind(err) != badStatus {
		t.Errorf("before it is ready it answers %v", err)
	}
	p.isReady()
	for _, path := range []string{"/ready", "/"} {
		if err := askOnce(address, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	e := p.out.entries(t)
	if d := e[1].Time.Sub(e[0].Time); d < 450*time.Millisecond {
		t.Errorf("ready after %s", d)
	}
}

func TestHookWritesBeginAndEnd(t *testing.T) {
	for _, tc := range []struct {
		sleep string
		cut   bool
		want  []string
	}{
		{sleep: "200ms", want: []string{hookBegin, hookEnd}},
		{sleep: "1h", cut: true, want: []string{hookBegin}},
	} {
		file := filepath.Join(t.TempDir(), "journal")
		t.Setenv("WORKLOAD_JOURNAL", file)
		p := start(t, "prestop", "--sleep", tc.sleep)
		journal := func() []entry {
			text, _ := os.ReadFile(file)
			return entriesOf(t, string(text))
		}
		if tc.cut {
			until(t, "the hook to begin", func() bool { return len(journal()) > 0 })
			p.signal(syscall.SIGKILL)
		}
		if err := p.ends(); (err != nil) != tc.cut {
			t.Errorf("it ended with %v", err)
		}
		if got := whats(journal()); !slices.Equal(got, tc.want) {
			t.Errorf("the journal has %q, want %q", got, tc.want)
		}
	}
}

// TestPauseEndsAtSIGTERM lets pause reap two children, one after the other. It
// continues after the first, so its signal handler is installed by then.
func TestPauseEndsAtSIGTERM(t *testing.T) {
	ended := make(chan error, 1)
	go func() { ended <- run([]string{"pause"}, io.Discard) }()
	for range 2 {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "pause to reap a child", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	select {
	case err := <-ended:
		t.Fatalf("it exited before SIGTERM: %v", err)
	default:
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM did not end it")
	}
}

func TestReapWaitsForEveryEndedChild(t *testing.T) {
	var pids []int
	for range 3 {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	until(t, "them to be reaped", func() bool {
		reap()
		return !slices.ContainsFunc(pids, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
}

func TestInvalidCommandLinesAreRejected(t *testing.T) {
	for _, tc := range []struct{ args, says string }{
		{"", "use server"},
		{"serve", "unknown command"},
		{"server --at-sigterm die", "exit, graceful or ignore"},
		{"server now", "unknown argument"},
		{"load --url https://x/", "write one such as http://"},
		{"load --url http://x/ --workers 0", "from 1 to 1000"},
		{"load --url http://x/ --mode twice", "keep-alive"},
	} {
		err := run(strings.Fields(tc.args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: %v, want %q in it", tc.args, err, tc.says)
		}
	}
	t.Setenv("WORKLOAD_READY_AFTER", "soon")
	if _, err := serverFlags(nil); err == nil || !strings.Contains(err.Error(), "WORKLOAD_READY_AFTER") {
		t.Errorf("a bad environment: %v", err)
	}
}

func TestConcurrentJournalWritesDoNotMix(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			j, err := openJournal("p", file, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range 50 {
				j.note(ready)
			}
		})
	}
	all.Wait()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		entriesOf(t, sc.Text())
	}
	if n != 200 {
		t.Errorf("%d lines", n)
	}
}
