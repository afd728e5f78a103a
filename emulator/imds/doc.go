// Package imds emulates the Instance Metadata Service, version 2 only, of emulated
// EC2 instances: what instance metadata says is read from the EC2 state when it is
// asked for.
//
// On AWS every instance reaches its own service at the same link-local address. Here
// each instance gets a listener of its own on loopback, from [State.Serve], which
// answers while the instance is under power and refuses connections otherwise.
// [State.Set] makes a service misbehave.
package imds
