// Package testkit holds what tests of several packages share: a network proxy
// that can be cut, a real control plane to test against, and the test that
// keeps the architecture. Only tests import it.
package testkit
