package runner_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
)

var (
	_ manager.Runnable               = &runner.Runner{}
	_ manager.LeaderElectionRunnable = &runner.Runner{}
)

// begin is the start time of every test.
var begin = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// patience is the timeout for other goroutines; only a slow machine needs it.
const patience = 30 * time.Second

// world is a fake cluster with one record, whose status is stored after every
// pass, as the controller does.
type world struct {
	t      *testing.T
	client client.Client
	live   client.Client
	runner *runner.Runner
	stop   func()
	woken  chan string
	now    time.Time

	hooks    []v1beta1.Hook
	when     v1beta1.HookTime
	goAhead  time.Time
	status   []v1beta1.HookStatus
	subject  hooks.Subject
	happened []string

	jobNamespaces []string
}

func newWorld(t *testing.T, funcs interceptor.Funcs, all ...v1beta1.Hook) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).Build()
	w := &world{
		t: t, live: live, client: interceptor.NewClient(live, funcs), woken: make(chan string, 10000), now: begin,
		hooks: all, when: v1beta1.HookBeforeDrain, jobNamespaces: []string{"node-hooks"},
		subject: hooks.Subject{Interruption: "i-0abc", UID: "uid-1", Node: "node-a", InstanceID: "i-0abc", Kind: "SpotInterruption", Message: "cordoned"},
	}
	w.restart()
	t.Cleanup(func() { w.stop() })
	return w
}

// restart replaces the process by a new one without memory.
func (w *world) restart() {
	if w.stop != nil {
		w.stop()
	}
	w.runner = runner.New(runner.Options{
		Client: w.client, Live: w.live, Namespace: "lifeboat-system", JobNamespaces: w.jobNamespaces, Destinations: runner.Destinations{HTTP: true, Loopback: true}, Concurrency: 16,
		WakeHooks: func(record string) { w.woken <- record }, WakeNotifications: func(record string) { w.woken <- record },
	})
	w.stop = run(w.t, w.runner)
}

// run starts a runner and returns a function that stops it.
func run(t *testing.T, r *runner.Runner) func() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	return func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			ended <- nil
		case <-time.After(patience):
			t.Error("the runner does not end")
		}
	}
}

// try runs a pass and returns its result without storing it.
func (w *world) try() (runner.HookOutcome, error) {
	return w.runner.Hooks(w.t.Context(), runner.HookRun{
		Hooks: w.hooks, When: w.when, Status: w.status, Subject: w.subject, Now: w.now, GoAhead: w.goAhead,
	})
}

// pass runs a pass and stores its result.
func (w *world) pass() runner.HookOutcome {
	w.t.Helper()
	before := slices.Clone(w.status)
	out, err := w.try()
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(before, w.status) {
		w.t.Error("the status that was handed in was changed")
	}
	w.status = out.Status
	for _, h := range out.Happened {
		w.happened = append(w.happened, h.Reason+": "+h.Message)
	}
	if out.Done != (out.Waits == "") || out.Done && !out.Until.IsZero() {
		w.t.Errorf("contradictory: %+v", out)
	}
	return out
}

// passes runs n passes and returns the last result.
func (w *world) passes(n int) runner.HookOutcome {
	w.t.Helper()
	for range n - 1 {
		w.pass()
	}
	return w.pass()
}

// awaitWake waits until the record is woken.
func (w *world) awaitWake() {
	w.t.Helper()
	select {
	case got := <-w.woken:
		if got != w.subject.Interruption {
			w.t.Errorf("woke %s", got)
		}
	case <-time.After(patience):
		w.t.Fatal("no one woke the record")
	}
}

// after advances the clock.
func (w *world) after(d time.Duration) *world {
	w.now = w.now.Add(d)
	return w
}

func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	var list batchv1.JobList
	if err := w.live.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int { return strings.Compare(tryOf(&a), tryOf(&b)) })
	return list.Items
}

// onlyJob returns the single existing Job.
func (w *world) onlyJob() *batchv1.Job {
	w.t.Helper()
	jobs := w.jobs()
	if len(jobs) != 1 {
		w.t.Fatalf("%d Jobs", len(jobs))
	}
	return &jobs[0]
}

func tryOf(j *batchv1.Job) string {
	for _, v := range j.Spec.Template.Spec.Containers[0].Env {
		if v.Name == "LIFEBOAT_TRY" {
			return v.Value
		}
	}
	return ""
}

// ends finishes a Job, as the Job controller would.
func (w *world) ends(j *batchv1.Job, typ batchv1.JobConditionType, reason string) {
	w.t.Helper()
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue, Reason: reason})
	if err := w.live.Status().Update(w.t.Context(), j); err != nil {
		w.t.Fatal(err)
	}
}

func jobHook(name string, change ...func(*v1beta1.Hook)) v1beta1.Hook {
	h := v1beta1.Hook{Name: name, When: v1beta1.HookBeforeDrain, Job: &v1beta1.HookJob{
		Template: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"tool:1"}]}}}}`)},
	}}
	for _, c := range change {
		c(&h)
	}
	return h
}

func webHook(name, url string, change ...func(*v1beta1.Hook)) v1beta1.Hook {
	return jobHook(name, append([]func(*v1beta1.Hook){func(h *v1beta1.Hook) {
		h.Job, h.Webhook = nil, &v1beta1.Webhook{URL: url}
	}}, change...)...)
}

func retries(n int32) func(*v1beta1.Hook) { return func(h *v1beta1.Hook) { h.Retries = n } }

func holding(h *v1beta1.Hook) { h.OnFailure = v1beta1.HookHold }

func afterDrain(h *v1beta1.Hook) { h.When = v1beta1.HookAfterDrain }

func timeout(d time.Duration) func(*v1beta1.Hook) {
	return func(h *v1beta1.Hook) { h.Timeout = &metav1.Duration{Duration: d} }
}

// server is an HTTP server that records its requests.
type server struct {
	*httptest.Server
	mu         sync.Mutex
	asked      []request
	concurrent int
	most       int
}

type request struct {
	path, body string
	header     http.Header
}

func serve(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, request{path: r.Method + " " + r.URL.Path, body: string(body), header: r.Header.Clone()})
		s.concurrent++
		s.most = max(s.most, s.concurrent)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.concurrent--
			s.mu.Unlock()
		}()
		handle(rw, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *server) maxConcurrent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// hang responds only after the caller has disconnected.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
