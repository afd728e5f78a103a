package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

func TestProgressWithoutTerminalPrintsLinePerStep(t *testing.T) {
	var out bytes.Buffer
	render, finish := RenderStep(terminal.Stream{Writer: &out})
	o := Options{Progress: render}
	for _, name := range []string{"control plane", "wiring"} {
		if err := o.run(name, func(detail func(string)) error {
			detail("on its way")
			detail("done with " + name)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	if err := o.run("lifeboatd", func(func(string)) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("run() = %v", err)
	}
	finish()
	want := "✓ control plane      0.0 s  done with control plane\n✓ wiring             0.0 s  done with wiring\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestSlowStepIsReportedPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		render, finish := RenderStep(terminal.Stream{Writer: &out})
		defer finish()
		o := Options{Progress: render}
		if err := o.run("programs", func(detail func(string)) error {
			time.Sleep(500 * time.Millisecond) // off the beat
			for i := range 40 {
				detail(fmt.Sprintf("%d packages", i))
				time.Sleep(time.Second)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := "programs: 14 packages\nprograms: 29 packages\n✓ programs          40.5 s  39 packages\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestProgressAnimatesOnTerminal(t *testing.T) {
	var out bytes.Buffer
	render, finish := RenderStep(terminal.Stream{Writer: &out, TTY: true})
	render(Step{Name: "programs", Detail: "building"})
	render(Step{Name: "programs", Detail: "built", Done: true, Took: 90 * time.Second})
	finish()
	finish() // as often as one likes
	if !bytes.Contains(out.Bytes(), []byte("programs: building")) || !bytes.Contains(out.Bytes(), []byte("✓ programs          90.0 s  built\n")) {
		t.Errorf("progress: %q", out.String())
	}
}

func TestOutputIsSplitIntoLines(t *testing.T) {
	var got []string
	w := &lineWriter{line: func(s string) { got = append(got, s) }}
	for _, part := range []string{"one", " line\n\n  two", "\nthr"} {
		fmt.Fprint(w, part)
	}
	if diff := cmp.Diff([]string{"one line", "two"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
