package app

import (
	"context"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestNotifyBlocksOnFullChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := make(chan event.TypedGenericEvent[string], 1)
		changed := notify(t.Context(), to)
		go func() {
			changed("a")
			changed("b")
		}()
		synctest.Wait()
		if first, second := (<-to).Object, (<-to).Object; first != "a" || second != "b" {
			t.Errorf("got %q and %q, want a and b", first, second)
		}
	})
}

func TestNotifyEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		returned := false
		go func() {
			notify(ctx, make(chan event.TypedGenericEvent[string]))("a")
			returned = true
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !returned {
			t.Error("the callback still blocks, although nothing will read the channel")
		}
	})
}
