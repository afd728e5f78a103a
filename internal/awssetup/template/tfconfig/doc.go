// Package tfconfig evaluates Terraform configurations in HCL: variables, locals, modules
// on disk, count, for_each, dynamic blocks, and the functions that configurations of
// queues and rules use.
//
// A value that a configuration does not define becomes a symbol (package symbol). The
// result of everything that this package does not evaluate becomes one too. Only [Disk]
// reads files.
package tfconfig
