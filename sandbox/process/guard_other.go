//go:build unix && !linux

package process

import "syscall"

func sysProcAttr(Options) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guard kills the child's group when this process ends; release stops that.
func guard(pid int) (release func(), err error) {
	w, err := newWatchdog(pid)
	if err != nil {
		return nil, err
	}
	return w.release, nil
}
