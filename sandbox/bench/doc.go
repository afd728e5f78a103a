// Package bench measures Lifeboat on a real API server with a real etcd. lifeboatd is a process with
// the identity of the chart. Only AWS is emulated.
//
// Every number has a floor, which is measured in the same run: the fewest calls with the same effect.
// docs/benchmarks.md has the commands and the
// results.
package bench
