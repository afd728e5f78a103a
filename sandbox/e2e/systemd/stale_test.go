//go:build e2e && linux

package systemd

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestStaleReads repeats to the agent what Auto Scaling said before. It then answers hooks that have ended, which
// the counts of the tests above would show.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	t.Run("after a reboot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config{warm: true, running: true, repeat: "Warmed:Pending:Wait"})
		w.boot()
		w.untilState("Warmed:Running")
		must(t, w.machine.Cut())
		before := w.answers()
		w.boot()
		w.until("the agent answers again", func() bool { return w.answers() > before })
	})
	t.Run("after a suspension", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config{timeout: 60, repeat: "Pending:Wait"})
		w.suspendBeyondHook()
		w.until("the agent answers", func() bool { return w.answers() > 0 })
	})
}

// repeat passes calls to the API. Once it has described an instance in a state, it repeats that.
func repeat(api http.Handler, state string) http.Handler {
	var mu sync.Mutex
	var said *httptest.ResponseRecorder
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("Action=DescribeAutoScalingInstances")) {
			api.ServeHTTP(out, in)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if said == nil || !strings.Contains(said.Body.String(), ">"+state+"<") {
			said = httptest.NewRecorder()
			api.ServeHTTP(said, in)
		}
		maps.Copy(out.Header(), said.Header())
		out.WriteHeader(said.Code)
		_, _ = out.Write(said.Body.Bytes())
	})
}
