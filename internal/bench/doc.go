// Package bench measures what notices cost: how many a second are taken in, how
// soon one is acted on, and what memory and writes that takes. Everything is
// real but AWS, which is the emulator: an API server with etcd, the AWS SDK, and
// lifeboatd as a process with the identity that the chart gives it.
//
// Each number stands beside a floor, which is measured in the same run: the
// fewest calls that anybody could do it with. docs/benchmarks.md says how to run
// the benchmarks and what they found.
package bench
