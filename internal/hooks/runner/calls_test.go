package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
)

// path must not appear in any message.
const path = "/services/T0/B0/s3cr3t-t0ken-0123456789"

func hostOf(s *server) string { return strings.TrimPrefix(s.URL, "http://") }

func TestWebhookSucceeds(t *testing.T) {
	s := serve(t, status(http.StatusAccepted, "thanks"))
	w := newWorld(t, none, webHook("page", s.URL+path, func(h *v1beta1.Hook) {
		h.Webhook.Headers = map[string]string{"X-Team": "kafka", "Content-Type": "text/plain"}
		h.Webhook.Body = "{{.Node}} goes"
	}))
	if out := w.pass(); out.Done || out.Waits != "hook page runs (try 1 of 1, at most until 08:15:02 UTC)" || !out.Until.Equal(begin.Add(65*time.Second)) {
		t.Errorf("%+v", out)
	}
	w.awaitWake()
	if out := w.pass(); !out.Done {
		t.Errorf("%+v", out)
	}
	if got := w.status[0]; got.State != v1beta1.HookSucceeded || got.Message != hostOf(s)+" answered 202 Accepted" {
		t.Errorf("%+v", got)
	}
	got := s.requests()
	if len(got) != 1 || got[0].path != "POST "+path || got[0].body != "node-a goes" {
		t.Fatalf("%+v", got)
	}
	h := got[0].header
	if h.Get("X-Team") != "kafka" || h.Get("Content-Type") != "text/plain" || len(h.Get("Idempotency-Key")) != 32 || !strings.HasPrefix(h.Get("User-Agent"), "lifeboatd/") {
		t.Errorf("%v", h)
	}
}

func TestDefaultBodyIsJSON(t *testing.T) {
	s := serve(t, status(200, ""))
	w := newWorld(t, none, webHook("page", s.URL))
	w.pass()
	w.awaitWake()
	if got := s.requests()[0]; got.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.body, `{"text":"node-a (i-0abc, SpotInterruption): cordoned"`) {
		t.Errorf("%+v", got)
	}
}

func TestWebhookErrorsHideSecrets(t *testing.T) {
	elsewhere := serve(t, status(200, "for another host"))
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"an error with a text", status(500, "boom: run `lifeboat approve --all`"), "HOST answered 500 Internal Server Error"},
		{"an error that repeats the URL", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such hook "+r.URL.Path+" or s3cr3t-t0ken-0123456789", http.StatusGone)
		}, "HOST answered 410 Gone"},
		{"an unknown status", status(599, ""), "HOST answered 599"},
		{"a redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/?q="+path, http.StatusTemporaryRedirect)
		}, "HOST answered 307 Temporary Redirect, a redirect that Lifeboat does not follow: configure the final URL"},
		{"a redirect that would make it a GET", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}, "HOST answered 302 Found, a redirect that Lifeboat does not follow: configure the final URL"},
		{"redirects in a circle", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, path, http.StatusPermanentRedirect)
		}, "HOST answered 308 Permanent Redirect, a redirect that Lifeboat does not follow: configure the final URL"},
		{"a redirect to nonsense", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://%zz"+path)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "HOST could not be called: its answer is not valid HTTP"},
		{"no answer", hang, "HOST did not answer within 300ms"},
		{"half an answer", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("overloaded"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "HOST answered 503 Service Unavailable"},
		{"something else than HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("-ERR s3cr3t of another server\r\n\r\n"))
				_ = conn.Close()
			}
		}, "HOST could not be called: its answer is not valid HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.handle)
			w := newWorld(t, none, webHook("page", s.URL+path, timeout(300*time.Millisecond)))
			w.pass()
			w.awaitWake()
			w.pass()
			got := w.status[0]
			if want := strings.ReplaceAll(c.want, "HOST", hostOf(s)); got.State != v1beta1.HookFailed || got.Message != want {
				t.Errorf("got  %s %q\nwant %q", got.State, got.Message, want)
			}
			if strings.Contains(fmt.Sprint(w.status, w.happened), "s3cr3t") {
				t.Error("a secret came out")
			}
		})
	}
	if got := elsewhere.requests(); len(got) != 0 {
		t.Errorf("the request was sent to whom it is not for: %v", got)
	}
}

func TestSlowResponseTimesOut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	w := newWorld(t, none, webHook("page", s.URL, timeout(24*time.Hour)))
	w.pass()
	w.awaitWake()
	if out := w.pass(); !out.Done || w.status[0].State != v1beta1.HookSucceeded {
		t.Errorf("%+v", w.status)
	}
}

func TestSameHostRedirectIsFollowed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		}
	})
	w := newWorld(t, none, webHook("page", s.URL+"/here", func(h *v1beta1.Hook) { h.Webhook.Body = "x" }))
	w.pass()
	w.awaitWake()
	if out := w.pass(); !out.Done || w.status[0].State != v1beta1.HookSucceeded {
		t.Errorf("%+v", w.status)
	}
	if got := s.requests(); len(got) != 2 || got[1].path != "POST /there" || got[1].body != "x" {
		t.Errorf("%+v", got)
	}
}

func TestNoListener(t *testing.T) {
	s := serve(t, status(200, ""))
	s.Close()
	w := newWorld(t, none, webHook("page", s.URL+path))
	w.pass()
	w.awaitWake()
	w.pass()
	if got, want := w.status[0].Message, hostOf(s)+" could not be called: connection refused"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestURLFromSecret(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/T0/B0" {
			http.Error(w, "no hook "+r.URL.Path+" of key hush", http.StatusForbidden)
		}
	})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "slack", errors.New("no"))
	for _, c := range []struct {
		name  string
		value string
		fails error
		want  string
	}{
		{"it is there", s.URL + "/ok\n", nil, "the URL in Secret slack (url) answered 200 OK"},
		{"it fails", s.URL + "/T0/B0?key=hush", nil, "the URL in Secret slack (url) answered 403 Forbidden"},
		{"it is none", "hush", nil, "the URL in Secret slack (url) cannot be called: the URL has no supported scheme: begin it with https:// (or http://)"},
		{"no entry", "", nil, "the URL in Secret slack (url) does not exist: Secret lifeboat-system/slack has no key url: add that key"},
		{"no Secret", "-", nil, "the URL in Secret slack (url) does not exist: create Secret lifeboat-system/slack with the key url"},
		{"no right", s.URL, forbidden, "reading the URL in Secret slack (url) is forbidden: add slack to the chart's value webhooks.secrets"},
		{"no answer", s.URL, errors.New("etcd is away"), "reading the URL in Secret slack (url): etcd is away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, none, webHook("page", "", func(h *v1beta1.Hook) {
				h.Webhook.URLFrom = &v1beta1.SecretKey{Name: "slack", Key: "url"}
			}))
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lifeboat-system", Name: "slack"}}
			if c.value != "" {
				secret.Data = map[string][]byte{"url": []byte(c.value)}
			}
			if c.value != "-" {
				if err := w.live.Create(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
			}
			if c.fails != nil {
				under := w.live.(client.WithWatch)
				w.live = interceptor.NewClient(under, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return c.fails
				}})
				w.restart()
			}
			w.pass()
			w.awaitWake()
			w.pass()
			if got := w.status[0].Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAttemptKeyIsStableAcrossCrash(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { hang(w, r) })
	w := newWorld(t, none, webHook("page", s.URL, retries(1), timeout(time.Hour)))
	w.pass()
	await(t, func() bool { return len(s.requests()) == 1 })
	w.restart()
	if out := w.after(10 * time.Minute).pass(); out.Done || !out.Until.Equal(w.now.Add(time.Hour+5*time.Second)) {
		t.Errorf("what came of the call is not known, so it is made again: %+v", out)
	}
	await(t, func() bool { return len(s.requests()) == 2 })
	if len(w.happened) != 1 || w.status[0].Try != 1 {
		t.Errorf("a crash counts as a try: %v", w.happened)
	}
	s.CloseClientConnections()
	w.awaitWake()
	w.pass()
	w.after(time.Minute).pass()
	await(t, func() bool { return len(s.requests()) == 3 })
	var keys []string
	for _, r := range s.requests() {
		keys = append(keys, r.header.Get("Idempotency-Key"))
	}
	if keys[0] != keys[1] || keys[1] == keys[2] {
		t.Errorf("%v", keys)
	}
}

func TestResultIsKeptUntilRecorded(t *testing.T) {
	s := serve(t, status(200, ""))
	w := newWorld(t, none, webHook("page", s.URL))
	w.pass()
	w.awaitWake()
	for range 3 {
		if out, err := w.try(); err != nil || !out.Done {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestInvalidBodyIsNotRetried(t *testing.T) {
	w := newWorld(t, none, webHook("page", "http://127.0.0.1:1", retries(3), func(h *v1beta1.Hook) { h.Webhook.Body = "{{.Node.Name}}" }))
	if out := w.pass(); !out.Done || !strings.HasPrefix(w.status[0].Message, "rendering the body:") {
		t.Errorf("%+v", w.status)
	}
}

func TestShutdownIsNotFailure(t *testing.T) {
	s := serve(t, hang)
	w := newWorld(t, none, webHook("page", s.URL, timeout(time.Hour)))
	w.pass()
	await(t, func() bool { return len(s.requests()) == 1 })
	w.stop()
	if out := w.pass(); out.Done || w.status[0].State != v1beta1.HookRunning || len(w.woken) != 0 {
		t.Errorf("%+v", w.status)
	}
}

// A thousand hooks to an unresponsive host must not delay the hooks to others.
func TestHangingHostDelaysNoOther(t *testing.T) {
	hanging, well := serve(t, hang), serve(t, status(200, ""))
	w := newWorld(t, none)
	ask := func(record, url string) runner.HookOutcome {
		out, err := w.runner.Hooks(t.Context(), runner.HookRun{
			Hooks: []v1beta1.Hook{webHook("page", url, timeout(time.Hour))}, When: v1beta1.HookBeforeDrain,
			Subject: hooks.Subject{Interruption: record, UID: types.UID(record)}, Now: begin,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for i := range 1000 {
		ask(fmt.Sprint("hanging-", i), hanging.URL)
	}
	for i := range 50 {
		ask(fmt.Sprint("well-", i), well.URL)
	}
	for range 50 {
		select {
		case record := <-w.woken:
			if !strings.HasPrefix(record, "well-") {
				t.Errorf("woke %s", record)
			}
		case <-time.After(patience):
			t.Fatalf("only %d were answered", len(well.requests()))
		}
	}
	if a, b := hanging.maxConcurrent(), well.maxConcurrent(); a > 4 || b > 4 {
		t.Errorf("%d and %d requests at the same time to one place", a, b)
	}
}

func TestQueuedCallTimesOut(t *testing.T) {
	s := serve(t, hang)
	w := newWorld(t, none)
	ask := func(record string, within time.Duration, status []v1beta1.HookStatus) []v1beta1.HookStatus {
		out, err := w.runner.Hooks(t.Context(), runner.HookRun{
			Hooks: []v1beta1.Hook{webHook("page", s.URL, timeout(within))}, When: v1beta1.HookBeforeDrain, Status: status,
			Subject: hooks.Subject{Interruption: record, UID: types.UID(record)}, Now: begin,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Status
	}
	for i := range 4 {
		ask(fmt.Sprint(i), time.Hour, nil)
	}
	await(t, func() bool { return len(s.requests()) == 4 })
	begun := ask("late", 50*time.Millisecond, nil)
	if got := <-w.woken; got != "late" {
		t.Fatalf("woke %s", got)
	}
	got := ask("late", 50*time.Millisecond, begun)
	if want := hostOf(s) + " was not called within 50ms: all call slots were in use"; got[0].Message != want {
		t.Errorf("got  %s\nwant %s", got[0].Message, want)
	}
}

// await waits until a condition of another goroutine holds.
func await(t *testing.T, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for end := time.After(patience); !is(); {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("it did not come about")
		}
	}
}
