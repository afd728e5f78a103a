// Package policy decides what is done about an interruption: it makes a decision with its
// reasons from the notices, the node and the policies. It is pure: it gets the time as a value
// and makes no call. The controller and `lifeboat explain` therefore give the same answer for
// the same facts.
//
// The deciding notice is chosen first (package notice). Of the policies that select the node,
// the one with the highest priority governs it; ties go to the name that sorts first. Its first
// rule for the kind and the code of the notice applies. Without such a rule a built-in default
// applies, but the policy still governs the node. If that policy is not valid, a built-in
// default applies and needs approval (guard.go).
//
// The comparisons are in checks.go and match.go, the start time in schedule.go, approval in
// approval.go. The validation of policies is in validate.go and settings.go, and its messages
// are in words.go.
package policy
