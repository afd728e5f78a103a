// Package queuepolicy evaluates resource policies, as queues and keys have them:
// pure, and strict about what it does not know.
//
// It follows the IAM User Guide, "Policy evaluation logic" and "IAM JSON policy
// elements reference": an explicit Deny wins, then an Allow, and without either
// the policy has no opinion. A statement that hangs on a condition operator that
// is not implemented is never ignored: [Parse] refuses it, and after [ParseAny]
// it makes the verdict [Unknown].
package queuepolicy
