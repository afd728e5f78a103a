package osthread

import "golang.org/x/sys/unix"

func isMain() bool { return unix.Gettid() == unix.Getpid() }
