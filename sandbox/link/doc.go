// Package link carries connections between the parts of a sandbox, and can disturb them.
//
// A link is a TCP proxy on loopback with a name, such as lifeboatd-api. Its condition comes from a
// file, so that another process can change it. Each condition in the file has an end: a program that
// is killed leaves no link broken.
package link
