// Package policy decides what is done about an interruption: from the notices,
// the node and the policies it makes a decision with its reasons. It is pure:
// time comes in as a value and nobody is called, so that the controller and
// `lifeboat explain` say the same thing about the same facts.
//
// The notice that rules is chosen first (package notice). Of the policies that
// are valid and select the node the one with the highest priority rules, ties
// going to the name that sorts first; of its rules the first that is for the
// kind of the notice. Where none is, the built-in defaults rule.
package policy
