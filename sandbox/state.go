package sandbox

import "github.com/lifeboat-dev/lifeboat/internal/sandboxstate"

// What one has to know to use a sandbox. Package sandboxstate keeps it, so that programs
// that only use a sandbox need not be linked with all that runs one.
type (
	// State is what the state file holds.
	State = sandboxstate.State
	// Part is one of the things a sandbox consists of.
	Part = sandboxstate.Part
	// PartStatus says how a part is.
	PartStatus = sandboxstate.PartStatus
	// Status says how a sandbox is.
	Status = sandboxstate.Status
)

var (
	// ErrRunning says that a sandbox of that name runs already.
	ErrRunning = sandboxstate.ErrRunning
	// ErrNotRunning says that there is no sandbox of that name.
	ErrNotRunning = sandboxstate.ErrNotRunning
)

// DefaultDir is where a sandbox of this name is kept.
func DefaultDir(name string) (string, error) { return sandboxstate.DefaultDir(name) }

// Inspect looks at the sandbox of a name. The error wraps ErrNotRunning if there is none.
func Inspect(name string) (Status, error) { return sandboxstate.Inspect(name) }

// List looks at every sandbox in the default place, by name.
func List() ([]Status, error) { return sandboxstate.List() }
