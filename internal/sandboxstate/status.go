package sandboxstate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// PartStatus says how a part is.
type PartStatus struct {
	Part
	Alive bool `json:"alive"`
}

// ErrNotRunning says that there is no sandbox of that name.
var ErrNotRunning = errors.New("it does not run")

// Status says how a sandbox is.
type Status struct {
	State
	// Running says that its supervisor lives.
	Running bool         `json:"running"`
	Health  []PartStatus `json:"health"`
}

// Inspect looks at the sandbox of a name. The error wraps ErrNotRunning if there
// is none; one that was killed is still there, not running, until Stop or the
// next Start clears it away.
func Inspect(name string) (Status, error) {
	name = cmp.Or(name, DefaultName)
	if err := CheckName(name); err != nil {
		return Status{}, err
	}
	dir, err := DefaultDir(name)
	if err != nil {
		return Status{}, err
	}
	st, ok, err := Read(dir)
	if err != nil {
		return Status{}, err
	}
	if !ok {
		return Status{}, fmt.Errorf("looking at the sandbox %s: %w", name, ErrNotRunning)
	}
	running, err := Held(dir)
	if err != nil {
		return Status{}, err
	}
	out := Status{State: st, Running: running}
	for _, p := range st.Parts {
		out.Health = append(out.Health, PartStatus{Part: p, Alive: running && alive(p.PID)})
	}
	return out, nil
}

// alive reports whether there is a process with this id.
func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// List looks at every sandbox in the default place, by name.
func List() ([]Status, error) {
	base, err := baseDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	var out []Status
	for _, e := range entries {
		if !e.IsDir() || !nameFormat.MatchString(e.Name()) {
			continue
		}
		st, err := Inspect(e.Name())
		switch {
		case errors.Is(err, ErrNotRunning):
		case err != nil:
			return nil, err
		default:
			out = append(out, st)
		}
	}
	return out, nil
}
