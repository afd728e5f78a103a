// Package diagnose judges the wiring that was found in an account or in a
// template: will every notice that AWS sends about a node reach Lifeboat, and if
// not, why not, and what mends it?
//
// [Run] is pure: it judges a [snapshot.Snapshot], whoever made it. [Look] makes
// one of a live account. [Cause] is for the controller: it says in a sentence why
// the queue did not bring a notice that was heard another way.
package diagnose
