// Package metadata reads the instance metadata of the machine that it runs on, and
// says what to do where that cannot be had.
package metadata
