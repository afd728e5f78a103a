// Package bench measures Lifeboat on a real API server with a real etcd, each a
// process of its own, and with lifeboatd as a process that has the identity of the
// chart. Only AWS is emulated.
//
// Every number stands beside a floor that is measured in the same run: the fewest
// calls that have the same effect. docs/benchmarks.md has the commands and the
// results.
package bench
