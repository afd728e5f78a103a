// Package machines runs the EC2 machines under a cluster's nodes. It boots a machine that has
// power, and registers its Node as a kubelet on EC2 would. A machine without power goes silent. As
// a cloud controller manager does, it deletes the Node of a terminated instance, but only once that
// is NotReady.
//
// If an agent on the machine starts the kubelet, [Gates] is between the cloud and the operator: it
// reports no power until the agent starts the kubelet.
//
// Plans depend only on the current instances, hardware and nodes, so an operator can stop and
// resume. [Hardware] is what runs the machines: [Simulated] here, or real instances.
package machines
