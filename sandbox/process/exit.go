package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
)

// ExitError is the error of a child that ended without a request.
type ExitError struct {
	Name      string   // the child
	LogFile   string   // its whole output
	LastLines []string // the end of its output
	Err       error    // its exit status, or the signal that ended it
}

func (e *ExitError) Error() string {
	if len(e.LastLines) == 0 {
		return fmt.Sprintf("%s ended: %v (no output; log: %s)", e.Name, e.Err, e.LogFile)
	}
	return fmt.Sprintf("%s ended: %v; its last lines (all: %s):\n  %s",
		e.Name, e.Err, e.LogFile, strings.Join(e.LastLines, "\n  "))
}

func (e *ExitError) Unwrap() error { return e.Err }

// LastLines returns the end of the child's output so far, for an error message about a running child.
func (p *Process) LastLines() []string { return lastLines(p.logFile, p.logStart) }

// lastLines reads the last lines of a log after offset start. A read error is returned as a line,
// because it must not hide the error that the lines explain.
func lastLines(path string, start int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return []string{"log unreadable: " + err.Error()}
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return []string{"log unreadable: " + err.Error()}
	}
	from := max(start, size-tailBytes)
	buf := make([]byte, max(0, size-from))
	if _, err := f.ReadAt(buf, from); err != nil && !errors.Is(err, io.EOF) {
		return []string{"log unreadable: " + err.Error()}
	}
	if from > start { // begins within a line
		_, buf, _ = bytes.Cut(buf, []byte("\n"))
	}
	text := strings.TrimRight(string(buf), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):]
}
