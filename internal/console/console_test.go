package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

const host = "127.0.0.1:8474"

// errNoWrite is the answer to every call that could change the cluster.
var errNoWrite = errors.New("the console may only list and watch")

// readOnly permits lists and watches. Lists fail with the error in away. It closes watched when the
// watch of interruptions begins.
func readOnly(away *atomic.Pointer[error], watched chan struct{}) interceptor.Funcs {
	var once sync.Once
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			if err := away.Load(); err != nil {
				return *err
			}
			return c.List(ctx, l, o...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, l, o...)
			if _, ok := l.(*v1beta1.InterruptionList); ok && err == nil {
				once.Do(func() { close(watched) })
			}
			return w, err
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errNoWrite
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errNoWrite
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errNoWrite
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errNoWrite
		},
	}
}

func interruption(name string, phase v1beta1.Phase) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.InterruptionSpec{InstanceID: name, NodeName: "node-of-" + name, Notices: []v1beta1.Notice{{ID: "a", Kind: "SpotInterruption"}}},
		Status:     v1beta1.InterruptionStatus{Phase: phase, Kind: "SpotInterruption"},
	}
}

// rig is a console on a cluster in memory.
type rig struct {
	*httptest.Server
	cluster client.WithWatch
	away    atomic.Pointer[error]
	watched chan struct{} // closed when the watch of interruptions begins
}

func start(t *testing.T, change func(*rig, *console.Options), objects ...client.Object) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &rig{
		cluster: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), watched: make(chan struct{}),
	}
	o := console.Options{
		Client: interceptor.NewClient(r.cluster, readOnly(&r.away, r.watched)), Cluster: "prod", Program: "lifeboat", Now: time.Now, Hosts: []string{host},
		Health: func(context.Context) view.Health { return view.Health{Text: "all runs", Problems: []finding.Finding{}} },
		Nodes:  func(context.Context) ([]string, error) { return []string{"n1"}, nil },
		Plan: func(_ context.Context, r console.PlanRequest) (view.Plan, error) {
			return view.Plan{Title: r.Node + " " + r.Kind}, nil
		},
	}
	if change != nil {
		change(r, &o)
	}
	c := console.New(o)
	r.Server = httptest.NewUnstartedServer(c.Handler())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Serve(ctx, r.Listener) }()
	r.URL = "http://" + r.Listener.Addr().String()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) get(t *testing.T, method, path string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for name, value := range header {
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body strings.Builder
	if _, err := bufio.NewReader(response.Body).WriteTo(&body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, body.String()
}

// message is an update, as the page reads it.
type message struct {
	All     bool
	Rows    []view.Row
	Gone    []string
	Cluster *struct {
		Listed   bool
		Failures []string
	}
	Needs []struct{ Command string }
}

// page reads updates until one satisfies done.
type page struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (r *rig) open(t *testing.T) *page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &page{t: t, lines: lines}
}

func (p *page) until(what string, done func(message) bool) message {
	p.t.Helper()
	for p.lines.Scan() {
		text, isData := strings.CutPrefix(p.lines.Text(), "data: ")
		if !isData {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			p.t.Fatal(err)
		}
		if done(m) {
			return m
		}
	}
	p.t.Fatalf("the stream ended (%v) before %s", p.lines.Err(), what)
	return message{}
}

func listed(m message) bool { return m.Cluster != nil && m.Cluster.Listed }

func TestPageFollowsInterruptions(t *testing.T) {
	r := start(t, nil, interruption("i-1", v1beta1.PhaseDraining))
	p := r.open(t)
	p.until("the first row", func(m message) bool { return len(m.Rows) == 1 && m.Rows[0].Node == "node-of-i-1" })
	<-r.watched // the fake client forgets changes before a watch

	changed := &v1beta1.Interruption{}
	if err := r.cluster.Get(t.Context(), client.ObjectKey{Name: "i-1"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Status.Phase = v1beta1.PhaseAwaitingApproval
	if err := r.cluster.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	m := p.until("the change", func(m message) bool { return len(m.Rows) == 1 && m.Rows[0].Phase == "AwaitingApproval" })
	if m.All || len(m.Needs) != 1 || m.Needs[0].Command != "lifeboat approve node-of-i-1" {
		t.Errorf("all %v, needs %+v", m.All, m.Needs)
	}
	if err := r.cluster.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	p.until("the deletion", func(m message) bool { return slices.Equal(m.Gone, []string{"i-1"}) })
}

// A storm changes all interruptions at once: the page gets few messages and misses nothing.
func TestChangesAreGathered(t *testing.T) {
	r := start(t, nil)
	p := r.open(t)
	p.until("the empty list", listed)
	<-r.watched
	const many = 90 // a watch of the fake client holds 100
	var creating sync.WaitGroup
	creating.Go(func() {
		for i := range many {
			if err := r.cluster.Create(t.Context(), interruption("i-"+strings.Repeat("x", 1+i%9)+time.Duration(i).String(), v1beta1.PhaseDraining)); err != nil {
				t.Error(err)
			}
		}
	})
	seen, messages := map[string]bool{}, 0
	p.until("all rows", func(m message) bool {
		messages++
		for _, row := range m.Rows {
			seen[row.Name] = true
		}
		return len(seen) == many
	})
	creating.Wait()
	if messages > many/3 {
		t.Errorf("%d messages for %d changes", messages, many)
	}
}

func TestPageShowsThatClusterDoesNotAnswer(t *testing.T) {
	refused := errors.New("interruptions is forbidden")
	// Before the first list: a watch that has begun does not fail.
	r := start(t, func(r *rig, _ *console.Options) { r.away.Store(&refused) })
	p := r.open(t)
	p.until("the failure", func(m message) bool {
		return m.Cluster != nil && slices.ContainsFunc(m.Cluster.Failures, func(f string) bool { return strings.Contains(f, "forbidden") })
	})
	r.away.Store(nil)
	p.until("the end of the failure", func(m message) bool { return listed(m) && len(m.Cluster.Failures) == 0 })
}

func TestOtherSitesAndWritesAreRefused(t *testing.T) {
	r := start(t, nil, interruption("i-1", v1beta1.PhaseDraining))
	r.open(t).until("the list", listed)
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		want         int
	}{
		"page":                    {"GET", "/", nil, 200},
		"script":                  {"GET", "/main.js", nil, 200},
		"interruption":            {"GET", "/api/interruptions/i-1", nil, 200},
		"same origin":             {"GET", "/api/nodes", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		"DNS rebinding":           {"GET", "/api/nodes", map[string]string{"Host": "evil.example:8474"}, 403},
		"DNS rebinding of a page": {"GET", "/", map[string]string{"Host": "evil.example"}, 403},
		"other site":              {"GET", "/api/nodes", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"post":                    {"POST", "/api/nodes", nil, 405},
		"delete":                  {"DELETE", "/api/interruptions/i-1", nil, 405},
		"unknown interruption":    {"GET", "/api/interruptions/i-2", nil, 404},
		"path outside":            {"GET", "/..%2f..%2fetc%2fpasswd", nil, 404},
		"plan without node":       {"GET", "/api/plan", nil, 400},
	} {
		code, header, body := r.get(t, c.method, c.path, c.header)
		if code != c.want {
			t.Errorf("%s: status %d, want %d: %s", name, code, c.want, body)
		}
		if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", name, csp)
		}
	}
}

// The API server's proxy sets the header Host.
func TestConsoleBehindProxyAnswersEachHost(t *testing.T) {
	r := start(t, func(_ *rig, o *console.Options) { o.Hosts, o.AnyHost = nil, true })
	for site, want := range map[string]int{"": 200, "same-origin": 200, "cross-site": 403, "same-site": 403} {
		if code, _, _ := r.get(t, "GET", "/api/nodes", map[string]string{"Host": "10.0.0.7:8474", "Sec-Fetch-Site": site}); code != want {
			t.Errorf("a request of the site %q gets %d, want %d", site, code, want)
		}
	}
}

func TestPlanAsksPlanner(t *testing.T) {
	r := start(t, nil)
	if _, _, body := r.get(t, "GET", "/api/plan?node=n1&kind=spot", nil); !strings.Contains(body, `"title":"n1 spot"`) {
		t.Error(body)
	}
	failing := start(t, func(_ *rig, o *console.Options) {
		o.Plan = func(context.Context, console.PlanRequest) (view.Plan, error) {
			return view.Plan{}, errors.New(`node "x" not found`)
		}
	})
	code, _, body := failing.get(t, "GET", "/api/plan?node=x", nil)
	if code != http.StatusBadRequest || !strings.Contains(body, `node \"x\" not found`) {
		t.Error(code, body)
	}
}
