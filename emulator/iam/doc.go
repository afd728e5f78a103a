// Package iam emulates the part of AWS Identity and Access Management that Karpenter
// and a person beside it use: instance profiles, and the roles in them.
//
// [State] holds everything behind one lock and knows no HTTP; requests.go translates
// the Query protocol, routes.go ties the two together. Policies are not kept and
// permit nothing: the emulator denies only what its gate is told to.
package iam
