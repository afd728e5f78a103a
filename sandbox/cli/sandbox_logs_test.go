package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func TestLogsOfParts(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "karpenter.log")
	if err := os.WriteFile(log, []byte("{\"message\":\"one\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := status("default")
	up.Parts = append(up.Parts, sandbox.Part{Name: "karpenter", Log: log}, sandbox.Part{Name: "kwok", Log: log + "-missing"})
	h := &harness{t: t, setup: (&testHarness{up: map[string]sandbox.Status{"default": up}}).use}
	if r := h.run(t.Context(), "logs", "karpenter"); r.code != command.ExitOK || r.out != "{\"message\":\"one\"}\n" {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	for args, want := range map[string]string{
		"logs karpentr":                 `has no part "karpentr" with a log; it has karpenter, kwok`,
		"logs kwok":                     "reading the log",
		"logs":                          "the name of a part",
		"logs karpenter --sandbox none": "lifeboat sandbox up",
	} {
		if r := h.run(t.Context(), strings.Fields(args)...); r.code == command.ExitOK || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, want %q: %s", args, r.code, want, r.err)
		}
	}
}

func TestLogsFollow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := writer(func(text []byte) {
		switch string(text) {
		case "one\n":
			if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
				t.Error(err)
			}
		case "two\n":
			cancel()
		}
	})
	if err := copyLog(ctx, out, path, true); err != nil || ctx.Err() != context.Canceled {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

type writer func([]byte)

func (w writer) Write(text []byte) (int, error) {
	w(text)
	return len(text), nil
}
