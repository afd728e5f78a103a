// Package console tests `lifeboat console` in a real browser, against a real API server, as a user
// who may only read.
package console
