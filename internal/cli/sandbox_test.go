package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// What follows `sandbox` goes to the other program as it is, also global flags before it.
func TestSandboxForwardsArguments(t *testing.T) {
	for args, want := range map[string]string{
		"sandbox":                         "",
		"sandbox --help":                  "--help",
		"sandbox up --nodes 3 --help":     "up --nodes 3 --help",
		"sandbox demo x.txtar -o json":    "demo x.txtar -o json",
		"-o json sandbox list":            "-o json list",
		"--sandbox=second sandbox status": "--sandbox=second status",
		"--sandbox second sandbox status": "--sandbox second status",
		"sandbox status --sandbox second": "status --sandbox second",
		"help sandbox":                    "--help",
		"help sandbox up":                 "up --help",
	} {
		got, ran := []string(nil), false
		h := &harness{t: t, setup: func(s *session) {
			s.runSandbox = func(args []string) error {
				got, ran = args, true
				return nil
			}
		}}
		r := h.run(t.Context(), strings.Fields(args)...)
		if !ran || !slices.Equal(got, strings.Fields(want)) || r.code != ExitOK {
			t.Errorf("lifeboat %s ran it %v with %q (exit code %d, %s)", args, ran, got, r.code, r.err)
		}
	}
}

func TestSandboxErrorNamesInstallCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r := (&harness{t: t}).run(t.Context(), "sandbox", "list")
	if r.code != ExitFailed || !strings.Contains(r.err, "make build") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// playLifeboat makes the test program play lifeboat.
const playLifeboat = "LIFEBOAT_TEST_PLAY"

func TestMain(m *testing.M) {
	if args := os.Getenv(playLifeboat); args != "" {
		env := OSEnv()
		env.Args = strings.Fields(args)
		os.Exit(newSession(env).run(context.Background()))
	}
	os.Exit(m.Run())
}

// The program takes over the streams and the exit code, and hears how the user calls it.
func TestSandboxExecsProgram(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$LIFEBOAT_CALLED_AS:$*\"\ncat\necho trouble >&2\nexit 7\n"
	if err := os.WriteFile(filepath.Join(dir, sandboxProgram), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), playLifeboat+"=kubectl-lifeboat sandbox up --nodes 3", "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stderr = strings.NewReader("typed\n"), &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("ended with %v, want exit code 7", err)
	}
	if want := "kubectl lifeboat:up --nodes 3\ntyped\n"; string(out) != want || stderr.String() != "trouble\n" {
		t.Errorf("wrote %q and %q, want %q", out, stderr.String(), want)
	}
}

func TestSandboxMustBeRunning(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	dead := sandboxstate.State{Name: "dead", Dir: filepath.Join(home, "lifeboat", "sandbox", "dead")}
	if err := errors.Join(os.MkdirAll(dead.Dir, 0o700), dead.Write()); err != nil {
		t.Fatal(err)
	}
	for flag, name := range map[string]string{"--sandbox default": "default", "--sandbox=dead": "dead"} {
		r := (&harness{t: t}).run(t.Context(), append([]string{"watch"}, strings.Fields(flag)...)...)
		want := fmt.Sprintf("error: looking at the sandbox %s: it does not run\n`lifeboat sandbox up` starts one;", name)
		if r.code != ExitFailed || !strings.Contains(r.err, want) {
			t.Errorf("watch %s: exit code %d: %s", flag, r.code, r.err)
		}
	}
}
