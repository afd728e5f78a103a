// Package machines runs the EC2 machines under a cluster's nodes: one that has
// power is started, its Node registered as a kubelet on EC2 would; one that loses it
// goes silent; and, as a cloud controller manager does, the Node of one that is gone
// is deleted, but only once it is NotReady.
//
// Where an agent on the machine decides when its kubelet runs, [Gates] stands between
// the cloud and the operator: what the agent holds back has no power yet.
//
// What to do is decided from instances, hardware and nodes as they are, never from
// what happened, so an operator that was stopped goes on where the world is. What
// the machines are made of is [Hardware]: [Simulated] here, or real instances.
package machines
