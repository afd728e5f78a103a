// Package osthread spends operating-system threads: what belongs to a thread, such as
// the namespaces it is in and the children that die with it, does not affect other threads
// and ends with it.
package osthread

import "runtime"

// Spend runs f in the background on a thread of its own, which ends when f returns.
func Spend(f func()) {
	go func() {
		// A goroutine that ends locked takes its thread with it.
		runtime.LockOSThread()
		if !isMain() {
			f()
			return
		}
		// But the main thread, which never ends: by it the process is known in /proc,
		// and must be where it always was. While it is held here, another is found.
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			f()
		}()
		<-done
		runtime.UnlockOSThread()
	}()
}
