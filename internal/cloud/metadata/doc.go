// Package metadata reads the instance metadata of its machine, and says what to
// do if that fails.
package metadata
