// Package queuepolicy evaluates resource policies of queues and keys. It is pure, and
// strict about unknown elements.
//
// It follows the IAM User Guide, "Policy evaluation logic" and "IAM JSON policy
// elements reference": an explicit Deny wins, then an Allow, and without either the
// policy has no opinion. A statement with an unimplemented condition operator is
// never ignored: [Parse] refuses it, and after [ParseAny] it makes the verdict
// [Unknown].
package queuepolicy
