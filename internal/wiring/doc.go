// Package wiring knows the AWS wiring that Lifeboat wants (a queue, its
// dead-letter queue, and the EventBridge rules that fill it) as data, and makes
// an account so.
//
// [Wanted] is pure. [Apply] may be run again at any time: it makes what is
// missing, corrects what differs and touches nothing else.
package wiring
