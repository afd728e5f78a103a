// Package doctor checks the wiring of an account or of a template. It answers
// whether every AWS notice about a node reaches Lifeboat, and if not, why not and how
// to fix it.
//
// [Run] is pure: it checks a [snapshot.Snapshot] from any source. [ReadAccount]
// creates one from a live account. [Cause] is for the controller: it explains why the
// queue did not deliver a notice that arrived from another source.
package doctor
