// Package scenario reads stories about interruptions and plays them on a
// sandbox.
//
// A story is a txtar archive: prose, then files (manifests, rules), one of them
// called script, a line a step. It reads like a story with a clock that starts
// when AWS gives its notice:
//
//	node a type=m5.large zone=us-east-1a spot
//	wait node a ready
//	apply workloads.yaml
//	wait pods ready
//	interrupt a kind=spot via=fis
//	by 3s node a cordoned
//	until deadline+3s
//	expect every pod whole
//
// [Parse] is strict: it names the line and says what to write. [Run] plays. What
// happened is judged from the API server and the machines alone, by [World],
// which is pure; what Lifeboat says about itself is shown, but proves nothing.
package scenario
