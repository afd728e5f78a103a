// Package osthread runs functions on operating-system threads that end with them. Changes of such a
// thread, such as its namespaces and the parent-death signal of its children, do not affect other
// threads.
package osthread

import "runtime"

// Spend runs f in the background on a separate thread, which ends when f returns.
func Spend(f func()) {
	go func() {
		// The thread of a goroutine that ends locked ends too.
		runtime.LockOSThread()
		if !isMain() {
			f()
			return
		}
		// The main thread never ends, and /proc shows its namespaces as those of the process. While
		// this goroutine holds it, Spend gets another thread.
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
