// Package command is what the programs lifeboat and lifeboat-sandbox have in common: the
// global flags, the exit codes, and what they say about wrong usage and other errors.
package command
