package sqs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestTheTurnstileLetsTheUrgentThroughFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newTurnstile(1)
		if err := gate.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, who := range []string{"rebalance", "health", "spot", "state", "asg"} {
			go func() {
				if err := gate.enter(t.Context(), who == "spot" || who == "asg"); err != nil {
					t.Error(err)
				}
				order = append(order, who)
			}()
			synctest.Wait() // in the order of the list
		}
		for range 5 {
			gate.leave()
			synctest.Wait()
		}
		if want := []string{"spot", "asg", "rebalance", "health", "state"}; !slices.Equal(order, want) {
			t.Errorf("let through %v, want %v", order, want)
		}
	})
}

func TestWhoGivesUpWaitingLeavesTheTurnToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newTurnstile(1)
		if err := gate.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone, through := false, false
		go func() { gone = gate.enter(ctx, true) != nil }()
		synctest.Wait()
		go func() { through = gate.enter(t.Context(), false) == nil }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		gate.leave()
		synctest.Wait()
		if !gone || !through {
			t.Errorf("given up %t, next through %t", gone, through)
		}
	})
}
