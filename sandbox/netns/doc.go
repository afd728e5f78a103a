// Package netns makes network namespaces that are not visible: without a name, each
// lasts as long as a process holds it open or runs in it. So a process that is
// killed leaves none behind.
//
// A socket belongs to the namespace that it was made in, with any user. So one
// process can listen in several, and carry connections from one to another.
package netns
