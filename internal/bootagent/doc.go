// Package bootagent is the agent that brings its machine safely into service and out of it again. The
// machine is a member of an Auto Scaling group that may have a warm pool.
//
// The kubelet waits for a gate. Instance metadata has the machine's target: its warm pool, where
// everything is prepared and the kubelet stays off; service, where the gate is opened; or
// termination. A lifecycle hook that holds the machine is completed once its condition is true.
//
// [Decide] is pure: from all facts and the time it returns the next action and the reason.
// [Agent] reads the facts and carries out the action. It writes its intent first, and may be
// killed at any line.
package bootagent
