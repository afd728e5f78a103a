// Package cli implements the program `lifeboat`, one file per command. It also
// works as `kubectl lifeboat`.
//
// Progress goes to standard error. Results go to standard output, as JSON with
// -o json. The commands use the same pure code as the controller
// (internal/policy, internal/drain), so their predictions match what the
// controller does.
package cli
