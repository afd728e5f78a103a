// Package warmpool replays a field report: many Auto Scaling groups created at once, some with warm
// pools, whose healthy instances are terminated (https://github.com/kubernetes/kops/issues/16582).
// The groups belong to the emulator; agents and control loops are Lifeboat's own. All run in one
// process with simulated time, so a hundred runs of forty minutes take minutes. The package holds
// only tests.
package warmpool
