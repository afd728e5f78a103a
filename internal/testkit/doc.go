// Package testkit holds the test that keeps the architecture: which package may
// import which, and why. It has no code of its own.
package testkit
