// Package awssetup describes the AWS resources that deliver notices to Lifeboat, and
// creates them. They are a queue, its dead-letter queue, and the EventBridge rules
// that fill it.
//
// It works in three steps. [Observe] reads the account. [Diff] is pure and lists the
// changes field by field. [Plan.Apply] makes them. [Apply] does all three. Every step
// is idempotent: it creates what is missing, corrects drift, and a second plan is
// empty.
//
// The resources carry the tags [TagCluster] and [TagManagedBy]. Lifeboat never
// changes or deletes resources without these tags, unless the user adopts them. The
// plan lists them as conflicts.
package awssetup
