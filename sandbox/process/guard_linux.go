package process

import "syscall"

// sysProcAttr gives the child its own group and asks the kernel to kill it when the thread that forked it ends.
func sysProcAttr(o Options) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: o.Cloneflags}
	if o.Unguarded {
		attr.Pdeathsig = 0
	}
	return attr
}

// guard has nothing to add to the kernel's parent-death signal.
func guard(int) (release func(), err error) { return func() {}, nil }
