// Package iam emulates the part of AWS Identity and Access Management that Karpenter and its
// operators use: instance profiles, and roles with their inline policies.
//
// [State] holds everything behind one lock and knows no HTTP; requests.go translates the Query
// protocol, routes.go connects the two. A role without policies may do everything.
package iam
