// Package console tests `lifeboat console` in a real browser, against a real API server, as a user
// who may only read. It also reads the website of the documentation in that browser.
package console
