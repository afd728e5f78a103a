package sqs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

func TestRandomDeliveryLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(wire.Scope{Account: "123456789012", Region: "us-east-1"})
		if err := s.Create("q", nil, nil); err != nil {
			t.Fatal(err)
		}
		s.SetDelivery(Delivery{Random: rand.New(rand.NewPCG(1, 2)), Duplicates: 0.2})
		const sent = 200
		for i := range sent {
			if _, err := s.Send("q", Outgoing{Body: fmt.Sprint(i)}, "sender"); err != nil {
				t.Fatal(err)
			}
		}
		var bodies []string
		partial, wait := 0, 5
		for {
			got, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 10, Wait: &wait})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			if len(got) < 10 {
				partial++
			}
			for _, m := range got {
				bodies = append(bodies, m.Body)
				if err := s.DeleteMessage("q", m.Handle); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		duplicates := len(bodies) - sent
		if partial < 10 || duplicates < sent/10 || duplicates > sent/3 || slices.IsSortedFunc(bodies, func(a, b string) int { return len(a) - len(b) }) {
			t.Errorf("%d partial batches, %d duplicates, in order: %v", partial, duplicates, bodies)
		}
		slices.Sort(bodies)
		if got := len(slices.Compact(bodies)); got != sent {
			t.Errorf("%d of %d messages were received", got, sent)
		}
	})
}

// A short poll asks some servers only, and may find nothing; a long poll finds a message that is there.
func TestShortPollsCanFindNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(wire.Scope{Account: "123456789012", Region: "us-east-1"})
		if err := s.Create("q", nil, nil); err != nil {
			t.Fatal(err)
		}
		s.SetDelivery(Delivery{Random: rand.New(rand.NewPCG(1, 2))})
		if _, err := s.Send("q", Outgoing{Body: "a"}, "sender"); err != nil {
			t.Fatal(err)
		}
		at, long, short := 0, 1, 0
		receive := func(wait *int) int {
			got, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 10, Visibility: &at, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			return len(got)
		}
		found := 0
		for range 100 {
			found += receive(&short)
			if receive(&long) == 0 {
				t.Fatal("a long poll found nothing")
			}
		}
		if found < 20 || found > 80 {
			t.Errorf("%d of 100 short polls found the message", found)
		}
	})
}
