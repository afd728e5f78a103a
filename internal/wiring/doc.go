// Package wiring knows the AWS wiring that Lifeboat wants (a queue, its
// dead-letter queue, and the EventBridge rules that fill it) as data, and makes
// an account so.
//
// It works in three steps. [Observe] reads what is there; [Diff] is pure and
// lists what has to change, field by field; [Plan.Apply] does it. [Apply] is all
// three. Any of it may be run again at any time: what is missing is made, what
// has drifted is put right, and a second plan is empty.
//
// What was made here carries the tags [TagCluster] and [TagManagedBy]. What does
// not is never changed or deleted, unless it is adopted: the plan names it as a
// conflict.
package wiring
