// Package warmpool plays a field report again: many Auto Scaling groups made at
// once, some with warm pools, whose instances are killed while they are healthy
// (https://github.com/kubernetes/kops/issues/16582). The groups are the
// emulator's, the agents and loops are Lifeboat's own, all in one process and in
// a time of its own, so that forty minutes of a hundred worlds take minutes. It
// holds tests alone.
package warmpool
