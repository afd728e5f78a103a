package sandbox

import "github.com/lifeboat-dev/lifeboat/internal/sandboxstate"

// The state that a user of a sandbox needs. Package sandboxstate keeps it, so that programs that
// only use a sandbox do not link what runs one.
type (
	// State is the content of the state file.
	State = sandboxstate.State
	// Part is one component of a sandbox.
	Part = sandboxstate.Part
	// PartStatus is the status of a part.
	PartStatus = sandboxstate.PartStatus
	// Status is the status of a sandbox.
	Status = sandboxstate.Status
)

var (
	// ErrRunning reports that a sandbox of that name runs already.
	ErrRunning = sandboxstate.ErrRunning
	// ErrNotRunning reports that no sandbox of that name runs.
	ErrNotRunning = sandboxstate.ErrNotRunning
)

// DefaultDir returns the directory of a sandbox by its name.
func DefaultDir(name string) (string, error) { return sandboxstate.DefaultDir(name) }

// Inspect returns the status of a sandbox by its name. The error wraps ErrNotRunning if it does not
// run.
func Inspect(name string) (Status, error) { return sandboxstate.Inspect(name) }

// List returns every sandbox in the default directory, sorted by name.
func List() ([]Status, error) { return sandboxstate.List() }
