// Package iam emulates the part of AWS Identity and Access Management that Karpenter and its
// operators use: instance profiles, and the roles in them.
//
// [State] holds everything behind one lock and knows no HTTP; requests.go translates the Query
// protocol, routes.go connects the two. It stores no policies: the emulator denies only what its
// gate is configured to deny.
package iam
