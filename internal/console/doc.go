// Package console serves a read-only web page about interruptions. It lists and watches
// Lifeboat's objects, and makes no other call to the API server.
package console
