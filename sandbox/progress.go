package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// Step is one line of progress. It is reported when it starts, perhaps with details while it runs,
// and when it is done.
type Step struct {
	// Name is the name of the step, such as "control plane".
	Name string `json:"name"`
	// Detail is the progress of the step, and its result at the end.
	Detail string `json:"detail,omitempty"`
	// Done reports that the step has ended, after Took.
	Done bool          `json:"done,omitempty"`
	Took time.Duration `json:"took,omitempty"`
}

// RenderStep writes steps to a stream: one line for each finished step. The current step is a
// moving line on a terminal, and otherwise a plain line from time to time. Call finish at the end.
func RenderStep(s terminal.Stream) (render func(Step), finish func()) {
	var mu sync.Mutex
	var moving *terminal.Progress // nil between two steps, so that others can write
	stop := func() {
		if moving != nil {
			moving.Stop()
			moving = nil
		}
	}
	render = func(st Step) {
		mu.Lock()
		defer mu.Unlock()
		if st.Done {
			stop()
			line := fmt.Sprintf("%s %-16s %5.1f s  %s", s.Paint(terminal.Good, "✓"), st.Name, st.Took.Seconds(), s.Paint(terminal.Dim, st.Detail))
			s.Printf("%s\n", strings.TrimRight(line, " "))
			return
		}
		if moving == nil {
			moving = terminal.NewProgress(s)
		}
		moving.Step("%s", strings.TrimSuffix(st.Name+": "+st.Detail, ": "))
	}
	finish = func() {
		mu.Lock()
		defer mu.Unlock()
		stop()
	}
	return render, finish
}

// run runs one step and reports it.
func (o Options) run(name string, f func(detail func(string)) error) error {
	began := time.Now()
	var mu sync.Mutex
	last := ""
	o.Progress(Step{Name: name})
	err := f(func(detail string) {
		mu.Lock()
		defer mu.Unlock()
		last = detail
		o.Progress(Step{Name: name, Detail: detail})
	})
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	o.Progress(Step{Name: name, Detail: last, Done: true, Took: time.Since(began)})
	return nil
}

// lineWriter splits its input into lines.
type lineWriter struct {
	line func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.rest = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			w.line(text)
		}
	}
}
