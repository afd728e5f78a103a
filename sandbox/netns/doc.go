// Package netns creates network namespaces without names. Each exists while a process holds it open or
// runs in it, so a killed process leaves none behind.
//
// A socket belongs to the namespace in which it was created. So one process can listen in several
// namespaces, and forward connections between them.
package netns
