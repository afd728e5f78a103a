// Package boot brings the machine that it runs on safely into service, and out of it
// again, as a member of an Auto Scaling group that may have a warm pool.
//
// The kubelet stands behind a gate. Instance metadata says where the group wants the
// machine: into its warm pool, where everything is made ready and the kubelet stays
// off; into service, where the gate is opened; or away. What holds the machine on its
// way, a lifecycle hook, is answered once what it waits for is true.
//
// [Decide] is pure: it is told all that is known, and the time, and says which one
// thing to do next and why. [Agent] finds out, does it, writes down what it is about
// to do before it does it, and may be killed at any line.
package boot
