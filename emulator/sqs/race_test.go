package sqs

import (
	"strconv"
	"sync"
	"testing"
)

// One of many consumers receives each message once, in any order.
func TestManyProducersAndConsumers(t *testing.T) {
	const producers, each = 4, 200
	s := newState(t, nil)
	var mu sync.Mutex
	seen := map[string]int{}
	done := make(chan struct{})
	finish := sync.OnceFunc(func() { close(done) })
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				got, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 10, Wait: new(int)})
				if err != nil {
					t.Error(err)
					return
				}
				for _, m := range got {
					if err := s.DeleteMessage("q", m.Handle); err != nil {
						t.Error(err)
					}
					mu.Lock()
					if seen[m.Body]++; len(seen) == producers*each {
						finish()
					}
					mu.Unlock()
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for p := range producers {
		workers.Go(func() {
			for i := range each {
				mustSend(t, s, strconv.Itoa(p*each+i))
			}
		})
	}
	workers.Wait()
	for body, n := range seen {
		if n != 1 {
			t.Errorf("message %s was received %d times", body, n)
		}
	}
}

// BenchmarkReceiveDelete receives and deletes batches of ten while the queue
// holds few or many messages; the ratio of the two should stay near one.
func BenchmarkReceiveDelete(b *testing.B) {
	for _, backlog := range []int{100, 10000} {
		b.Run("backlog="+strconv.Itoa(backlog), func(b *testing.B) {
			s := newState(b, nil)
			for i := range backlog {
				mustSend(b, s, strconv.Itoa(i))
			}
			for b.Loop() {
				for _, m := range mustReceive(b, s, "q", 0) {
					if err := s.DeleteMessage("q", m.Handle); err != nil {
						b.Fatal(err)
					}
					mustSend(b, s, m.Body)
				}
			}
		})
	}
}
