package osthread

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMainThreadIsNeverUsed(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		id := make(chan int, 1)
		Spend(func() { id <- unix.Gettid() })
		seen[<-id] = true
	}
	if seen[os.Getpid()] {
		t.Error("the main thread was spent")
	}
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		alive := 0
		for id := range seen {
			if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(id)); !errors.Is(err, os.ErrNotExist) {
				alive++
			}
		}
		// A number may be that of a new thread by now.
		if alive <= len(seen)/2 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d spent threads live", alive, len(seen))
		}
	}
}
