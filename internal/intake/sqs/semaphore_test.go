package sqs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestPrioritySemaphoreAdmitsUrgentCallersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPrioritySemaphore(1)
		if err := s.acquire(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, caller := range []string{"rebalance", "health", "spot", "state", "asg"} {
			go func() {
				if err := s.acquire(t.Context(), caller == "spot" || caller == "asg"); err != nil {
					t.Error(err)
				}
				order = append(order, caller)
			}()
			synctest.Wait() // fixes the order of arrival
		}
		for range 5 {
			s.release()
			synctest.Wait()
		}
		if want := []string{"spot", "asg", "rebalance", "health", "state"}; !slices.Equal(order, want) {
			t.Errorf("admitted %v, want %v", order, want)
		}
	})
}

func TestPrioritySemaphoreReusesCancelledSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPrioritySemaphore(1)
		if err := s.acquire(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, admitted := false, false
		go func() { cancelled = s.acquire(ctx, true) != nil }()
		synctest.Wait()
		go func() { admitted = s.acquire(t.Context(), false) == nil }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		s.release()
		synctest.Wait()
		if !cancelled || !admitted {
			t.Errorf("cancelled %t, next caller admitted %t", cancelled, admitted)
		}
	})
}
