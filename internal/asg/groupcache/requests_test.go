package groupcache

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A replica that does not lead takes no requests, and messages name groups of all clusters.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	w := &Watcher{o: Options{Clock: time.Now}, requests: map[string]bool{}, kick: make(chan struct{}, 1)}
	w.RequestRefresh(strings.Repeat("x", maxName+1))
	for i := range 2 * maxRequests {
		w.RequestRefresh(fmt.Sprint("other-", i))
	}
	w.RequestRefreshHooks("workers")
	got := w.takeRequests()
	if _, all := got[everything]; !all || !got["workers"] || len(got) != maxRequests+2 {
		t.Errorf("%d requests", len(got))
	}
}
