package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// Exit codes. They are documented in the help of the program lifeboat.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDoesNotFit  = 3
	ExitInterrupted = 130
)

// ExitError ends the program with a code of its own. Without Err the command has
// reported the failure already.
type ExitError struct {
	Code int
	Err  error
}

// Error is the cause.
func (e ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e ExitError) Unwrap() error { return e.Err }

// UsageErrorf makes an error that ends the program with ExitUsage.
func UsageErrorf(format string, args ...any) error {
	return ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Finish reports the error that a run ended with, and returns the exit code. explain returns
// the Problem that it is. name is how the user calls the program.
func Finish(ctx context.Context, err error, stderr terminal.Stream, name string, explain func(error) Problem) int {
	var exit ExitError
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		stderr.Printf("interrupted\n")
		return ExitInterrupted
	case errors.As(err, &exit) && exit.Err == nil:
		return exit.Code
	}
	stderr.Printf("%s %v\n", stderr.Paint(terminal.Bad, "error:"), err)
	p := explain(err)
	if p.Next != "" {
		stderr.Printf("%s\n", Rename(p.Next, name))
	}
	if p.ID != "" {
		stderr.Printf("More: %s#%s\n", ErrorsPage, p.ID)
	}
	if exit.Code != 0 {
		return exit.Code
	}
	return ExitFailed
}
