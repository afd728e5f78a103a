package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// clock is the current time of the program.
var clock = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// harness runs the program with fakes of its environment.
type harness struct {
	t      *testing.T
	getenv map[string]string
	setup  func(*session)
}

// result is the result of a run of the program.
type result struct {
	code     int
	out, err string
}

func (h *harness) run(ctx context.Context, args ...string) result {
	h.t.Helper()
	var out, err bytes.Buffer
	s := newSession(command.Env{
		Args: append([]string{"lifeboat-sandbox"}, args...), Out: &out, Err: &err,
		Getenv: func(key string) string { return h.getenv[key] },
	})
	s.now = func() time.Time { return clock }
	s.awsVersion = func(context.Context) string { return "aws-cli/2.17.0" }
	if h.setup != nil {
		h.setup(s)
	}
	code := s.run(ctx)
	return result{code: code, out: out.String(), err: err.String()}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}
