// Package policy decides what is done about an interruption: from the notices,
// the node and the policies it makes a decision with its reasons. It is pure:
// time comes in as a value and nobody is called, so that the controller and
// `lifeboat explain` say the same thing about the same facts.
//
// The notice that rules is chosen first (package notice). Of the policies that
// select the node the one with the highest priority has the say,
// ties going to the name that sorts first: it governs the node. Of its rules the
// first that is for the kind and the code of the notice rules; where none is, a
// built-in default does, and the policy governs all the same. Where that policy is not
// valid, a built-in default rules, and needs approval (guard.go).
//
// What policies look at is listed in checks.go and choose.go, when an action
// begins is in when.go, whom it waits for in approval.go, and what is wrong with
// a policy in validate.go and conduct.go, in the words of words.go.
package policy
