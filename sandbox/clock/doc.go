// Package clock makes the wall clock of one running process wrong.
//
// A Go program reads its clocks in the vDSO, the page of code that the kernel maps into each process
// (vdso(7)). So a preloaded library cannot change them. A time namespace has no offset for the wall clock
// (time_namespaces(7)). But the kernel lets a debugger write to the vDSO of one process. This package writes
// a function there that asks the kernel for the time, and changes the answer. The monotonic clock, and so
// every timer of a Go program, stays right.
//
// The process is stopped for a few milliseconds meanwhile. No thread is traced, and no register changes.
package clock
