// Package chaos breaks parts of a running sandbox on purpose, and repairs them.
//
// [Menu] lists the faults. A fault works from outside: with signals, links, and requests to the API
// server and the queue. So a test and another process use it in the same way. It has an end: [Start]
// returns what undoes it.
package chaos
