package command

import (
	"fmt"
	"slices"
	"strings"
)

// ErrorsPage describes the known errors. Each id is an anchor in it.
const ErrorsPage = "https://github.com/lifeboat-dev/lifeboat/blob/main/docs/reference/errors.md"

// Problem is an error that the program knows.
type Problem struct {
	// ID is stable: scripts and the page refer to it. It is empty for an unknown error.
	ID string
	// Meaning describes it on the page.
	Meaning string
	// Next is what to do. The program prints it after the error; empty if the error says it.
	Next string
}

var problems []Problem

// NewProblem makes a Problem and adds it to Problems. Next calls the program lifeboat.
func NewProblem(id, meaning, next string) Problem {
	p := Problem{id, meaning, next}
	problems = append(problems, p)
	return p
}

// Problems are all known errors, by id.
func Problems() []Problem {
	all := slices.Clone(problems)
	slices.SortFunc(all, func(a, b Problem) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Errorf makes an error that is this Problem.
func (p Problem) Errorf(format string, args ...any) error {
	return knownError{fmt.Errorf(format, args...), p}
}

// knownError is an error that is made where the Problem is known.
type knownError struct {
	error

	problem Problem
}

// Unwrap returns the cause.
func (e knownError) Unwrap() error { return e.error }

// With is the Problem with a next step that names details of the error.
func (p Problem) With(next string) Problem {
	p.Next = next
	return p
}
