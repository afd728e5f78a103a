package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const (
	terminalEvery = 500 * time.Millisecond
	plainEvery    = 15 * time.Second
)

// progress reports the state of a build to the user.
type progress struct {
	w        io.Writer
	terminal bool // lines may be overwritten
	every    time.Duration
}

func newProgress(w io.Writer) *progress {
	if w == nil {
		w = io.Discard
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{w: w, terminal: true, every: terminalEvery}
	}
	return &progress{w: w, every: plainEvery}
}

// println writes a permanent line. A failed write of progress does not stop the build.
func (p *progress) println(line string) { fmt.Fprintf(p.w, "%s%s\n", p.clear(), line) }

// update writes a line that the next one may replace.
func (p *progress) update(line string) {
	if p.terminal {
		fmt.Fprint(p.w, p.clear()+line)
		return
	}
	p.println(line)
}

func (p *progress) clear() string {
	if p.terminal {
		return "\r\x1b[K"
	}
	return ""
}

func (p *progress) built(name, version, path string, took time.Duration) {
	size := int64(0)
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	p.println(fmt.Sprintf("built %s %s in %s (%d MB)", name, version, took.Round(time.Second), size/1e6))
}

// follow reports on a running go build until it or ctx ends. Its error is the build's.
func (p *progress) follow(ctx context.Context, build *process.Process, log buildLog, what, cold string) error {
	started := time.Now()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	p.update(fmt.Sprintf("building %s (the first build takes %s)", what, cold))
	for {
		select {
		case <-build.Done():
			if build.Err() == nil {
				return nil
			}
			if p.terminal {
				fmt.Fprint(p.w, p.clear())
			}
			return log.explain(build.Err())
		case <-ctx.Done():
			p.println("stopped building " + what)
			return ctx.Err()
		case <-tick.C:
			p.update(fmt.Sprintf("building %s: %s, %s (the first build takes %s)",
				what, log.summary(), time.Since(started).Round(time.Second), cold))
		}
	}
}

// buildLog is the output of `go build -v`: a line for each downloaded module, then the import path of
// each compiled package.
type buildLog struct{ path string }

func (l buildLog) lines() (packages, downloads int, rest []string) {
	data, err := os.ReadFile(l.path)
	if err != nil {
		return 0, 0, []string{"build log unreadable: " + err.Error()}
	}
	for line := range strings.Lines(string(bytes.TrimRight(data, "\n"))) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			downloads++
		case !strings.ContainsAny(line, " \t"):
			packages++
		default:
			rest = append(rest, line)
		}
	}
	return packages, downloads, rest
}

func (l buildLog) summary() string {
	packages, downloads, _ := l.lines()
	switch {
	case packages == 0 && downloads == 0:
		return "getting ready"
	case packages == 0:
		return fmt.Sprintf("%d modules downloaded", downloads)
	}
	return fmt.Sprintf("%d packages", packages)
}

// explain returns the error of go build with its messages.
func (l buildLog) explain(err error) error {
	var exit *process.ExitError
	if errors.As(err, &exit) {
		err = exit.Err
	}
	_, _, rest := l.lines()
	const most = 20
	if len(rest) > most {
		rest = append(rest[:most:most], "…")
	}
	return fmt.Errorf("go build: %w\n  %s", err, strings.Join(rest, "\n  "))
}
