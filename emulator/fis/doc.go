// Package fis emulates AWS Fault Injection Service as far as it interrupts, stops and
// terminates instances: experiment templates, experiments, and the action
// aws:ec2:send-spot-instance-interruptions with its limits.
//
// [State] holds templates and experiments behind one lock and knows no HTTP; requests.go
// translates the REST protocol, routes.go lists the actions. Experiments act on an
// emulated EC2 and run on timers that end with [State.Run].
package fis
