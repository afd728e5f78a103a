// Package cli is the program `lifeboat`: one file a command. It also works as
// `kubectl lifeboat`.
//
// What a person waits for shows progress on standard error; what a script reads
// goes to standard output, as JSON with -o json. The commands think with the
// same pure code as the controller (internal/policy, internal/drain), so that
// what they foretell is what happens.
package cli
