// Package netns makes network namespaces that nobody sees: without a name, each
// lasts as long as somebody holds it open or runs in it. So a process that is
// killed leaves none behind.
//
// A socket belongs to the namespace that it was made in, whoever uses it. So one
// process can listen in several, and carry connections from one to another.
package netns
