package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// newSource makes a source tree whose module "tiny" prints its stamped version.
func newSource(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module github.com/lifeboat-dev/lifeboat\n\ngo 1.26\n")
	tiny := filepath.Join(root, "modules", "tiny")
	write(t, filepath.Join(tiny, "go.mod"), `module example.com/tiny

go 1.26

require example.com/pinned v1.2.3

replace example.com/pinned => ./pinned
`)
	write(t, filepath.Join(tiny, "main.go"), `package main

import "example.com/pinned"

var version = "none"

func main() { println(pinned.Name, version) }
`)
	write(t, filepath.Join(tiny, "pinned", "go.mod"), "module example.com/pinned\n\ngo 1.26\n")
	write(t, filepath.Join(tiny, "pinned", "pinned.go"), "package pinned\n\nconst Name = \"pinned\"\n")
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func tiny() module {
	return module{
		name: "tiny", pinned: "example.com/pinned", cold: "no time",
		ldflags: func(version string) string { return "-X main.version=" + version },
	}
}

// output is a writer for several goroutines.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func newTestBuilder(t *testing.T) (*builder, *output) {
	t.Helper()
	out := &output{}
	return &builder{source: newSource(t), cache: t.TempDir(), progress: newProgress(out)}, out
}

// entries lists the cache, without the locks.
func entries(t *testing.T, b *builder) []string {
	t.Helper()
	all, err := os.ReadDir(b.cache)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestEnsureBuildsOnceThenFinds(t *testing.T) {
	b, out := newTestBuilder(t)
	path, version, err := b.ensure(t.Context(), tiny())
	if err != nil {
		t.Fatal(err)
	}
	if version != "v1.2.3" {
		t.Errorf("version is %s, want v1.2.3", version)
	}
	printed, err := exec.Command(path).CombinedOutput()
	if err != nil || strings.TrimSpace(string(printed)) != "pinned v1.2.3" {
		t.Errorf("the program printed %q (%v), want its stamped version", printed, err)
	}
	if !strings.Contains(out.String(), "built tiny v1.2.3 in ") {
		t.Errorf("progress was %q", out)
	}

	before := out.String()
	again, _, err := b.ensure(t.Context(), tiny())
	if err != nil || again != path || out.String() != before {
		t.Errorf("the second call gave %s, %v, and printed %q; want the cached program", again, err, strings.TrimPrefix(out.String(), before))
	}
	if got := entries(t, b); len(got) != 1 {
		t.Errorf("the cache holds %q, want the program only", got)
	}
}

func TestConcurrentBuildsRunOnce(t *testing.T) {
	b, out := newTestBuilder(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, _, err := b.ensure(t.Context(), tiny()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(out.String(), "built tiny"); n != 1 {
		t.Errorf("built %d times, want once:\n%s", n, out)
	}
}

func TestChangedSourceIsRebuiltAndOldBuildsPruned(t *testing.T) {
	b, _ := newTestBuilder(t)
	main := filepath.Join(b.source, "modules", "tiny", "main.go")
	source, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for i := range keepOthers + 2 {
		write(t, main, fmt.Sprintf("%s\n// change %d\n", source, i))
		path, _, err := b.ensure(t.Context(), tiny())
		if err != nil {
			t.Fatal(err)
		}
		// Their uses are one hour apart.
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Dir(path), at, at); err != nil {
			t.Fatal(err)
		}
		built = append(built, path)
	}
	if _, err := os.Stat(built[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest of %d builds is still there (%v)", len(built), err)
	}
	for _, path := range built[1:] {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("one of the last %d builds is gone: %v", len(built)-1, err)
		}
	}
	write(t, filepath.Join(b.source, "modules", "tiny", "main_test.go"), "package main\n")
	if path, _, err := b.ensure(t.Context(), tiny()); err != nil || path != built[len(built)-1] {
		t.Errorf("a changed test gave %s, %v; want no new build", path, err)
	}
}

func TestCompilerErrorIsReported(t *testing.T) {
	b, _ := newTestBuilder(t)
	write(t, filepath.Join(b.source, "modules", "tiny", "main.go"), "package main\n\nfunc main() { nonsense() }\n")
	_, _, err := b.ensure(t.Context(), tiny())
	if err == nil || !strings.Contains(err.Error(), "building tiny v1.2.3: go build: exit status 1") || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("got error %v, want the compiler error", err)
	}
	if got := entries(t, b); len(got) != 0 {
		t.Errorf("the cache holds %q after a failed build", got)
	}
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	b, out := newTestBuilder(t)
	// A go command that never ends, with a child that never ends.
	bin := t.TempDir()
	pid := filepath.Join(bin, "pid")
	script := "#!/bin/sh\n[ \"$1\" = env ] && { echo go1.0; exit; }\nsleep 1000 & echo $! >" + pid + ".new; mv " + pid + ".new " + pid + "; wait\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// The remains of a killed build.
	write(t, filepath.Join(b.cache, unfinishedPrefix("tiny")+"123", "gotmp", "x"), "")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := b.ensure(ctx, tiny())
		done <- err
	}()
	waitFor(t, "the build to run", func() bool { _, err := os.Stat(pid); return err == nil })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want the context's", err)
	}
	if got := entries(t, b); len(got) != 0 {
		t.Errorf("the cache holds %q after a stopped build", got)
	}
	child, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the build's child to end", func() bool {
		return exec.Command("kill", "-0", strings.TrimSpace(string(child))).Run() != nil
	})
	if !strings.Contains(out.String(), "stopped building tiny v1.2.3") {
		t.Errorf("progress was %q", out)
	}
}

func TestWaitForOtherBuildEndsWithContext(t *testing.T) {
	b, out := newTestBuilder(t)
	unlock, err := b.lock(t.Context(), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := b.ensure(ctx, tiny())
		done <- err
	}()
	waitFor(t, "it to wait", func() bool { return strings.Contains(out.String(), "waiting for another lifeboat") })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want the context's", err)
	}
}

func TestWithoutGoExistingBuildsAreUsed(t *testing.T) {
	b, _ := newTestBuilder(t)
	t.Setenv("PATH", "/nonexistent")
	_, _, err := b.ensure(t.Context(), tiny())
	if err == nil || !strings.Contains(err.Error(), "there is no go command: install Go") {
		t.Errorf("got error %v, want the next step", err)
	}
	e, err := b.locate(tiny())
	if err != nil {
		t.Fatal(err)
	}
	write(t, e.binary(), "")
	if path, _, err := b.ensure(t.Context(), tiny()); err != nil || path != e.binary() {
		t.Errorf("got %s, %v; want the earlier build", path, err)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	const patience = 20 * time.Second
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSeveralProgramsOfOneModule(t *testing.T) {
	b, _ := newTestBuilder(t)
	write(t, filepath.Join(b.source, "modules", "tiny", "second", "main.go"), "//go:build special\n\npackage main\n\nfunc main() { println(\"second\") }\n")
	m := tiny()
	m.packages, m.tags = []string{".", "./second"}, "special"
	path, _, err := b.ensure(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tiny": "pinned v1.2.3", "second": "second"} {
		printed, err := exec.Command(filepath.Join(filepath.Dir(path), name)).CombinedOutput()
		if err != nil || strings.TrimSpace(string(printed)) != want {
			t.Errorf("%s printed %q (%v), want %q", name, printed, err, want)
		}
	}
	if one, _, err := b.ensure(t.Context(), tiny()); err != nil || one == path {
		t.Errorf("the same module with other packages and tags is found at the same place, %s (%v)", one, err)
	}
}

func TestModuleWithoutRequirements(t *testing.T) {
	b, _ := newTestBuilder(t)
	write(t, filepath.Join(b.source, "modules", "alone", "go.mod"), "module example.com/alone\n\ngo 1.26\n")
	write(t, filepath.Join(b.source, "modules", "alone", "main.go"), "package main\n\nfunc main() {}\n")
	m := module{name: "alone", ldflags: func(string) string { return "" }}
	path, version, err := b.ensure(t.Context(), m)
	if err != nil || version != unpinned || filepath.Base(path) != "alone" {
		t.Errorf("ensure() = %s, %s, %v", path, version, err)
	}
}
