// Package machines plays the EC2 machines under a cluster's nodes: an instance
// that has booted registers its Node as a kubelet on EC2 would, one that loses
// power goes silent, and, as a cloud controller manager does, the Node of one
// that is gone is deleted, but only once it is NotReady.
//
// What to do is decided from instances and nodes as they are, never from what
// happened, so a simulator that was stopped goes on where the world is. The
// kubelets' part of the play, heartbeats and pods, is kwok's: the simulator only
// gives nodes to it and takes them away. No condition of a Node is ever faked.
package machines
