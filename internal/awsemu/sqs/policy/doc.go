// Package policy evaluates resource policies, as queues have them: pure, and
// strict about what it does not know.
//
// It follows the IAM User Guide, "Policy evaluation logic" and "IAM JSON policy
// elements reference": an explicit Deny wins, then an Allow, and without either
// the policy has no opinion. Condition operators that are not implemented are
// refused when the policy is read, never ignored.
package policy
