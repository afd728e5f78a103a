package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

var none interceptor.Funcs

var jobsResource = schema.GroupResource{Group: "batch", Resource: "jobs"}

func at(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t) }

func TestHooksRunSequentially(t *testing.T) {
	w := newWorld(t, none, jobHook("late", afterDrain), jobHook("a"), jobHook("b"))
	out := w.pass()
	if out.Waits != "hook a runs (try 1 of 1, at most until 08:15:02 UTC)" || !out.Until.Equal(begin.Add(3*time.Second)) {
		t.Errorf("%+v", out)
	}
	a := w.onlyJob()
	if a.Namespace != "node-hooks" || a.Labels[v1beta1.LabelInterruption] != "i-0abc" {
		t.Errorf("%+v", a.ObjectMeta)
	}
	if w.pass(); len(w.jobs()) != 1 {
		t.Error("the second hook began before the first had ended")
	}
	w.ends(a, batchv1.JobComplete, "")
	if out := w.after(10 * time.Second).pass(); out.Waits != "hook b runs first" || !out.Until.After(w.now) || out.Until.After(w.now.Add(time.Second)) {
		t.Errorf("%+v", out)
	}
	w.pass()
	b := w.jobs()[0]
	if b.Name == a.Name {
		b = w.jobs()[1]
	}
	w.ends(&b, batchv1.JobSuccessCriteriaMet, "CompletionsReached")
	if out := w.after(time.Second).pass(); !out.Done {
		t.Errorf("%+v", out)
	}
	end := at(begin.Add(10 * time.Second))
	end2 := at(begin.Add(11 * time.Second))
	want := []v1beta1.HookStatus{
		{Name: "a", State: v1beta1.HookSucceeded, Try: 1, StartTime: at(begin), CompletionTime: &end, Message: "Job node-hooks/" + a.Name + " completed"},
		{Name: "b", State: v1beta1.HookSucceeded, Try: 1, StartTime: end, CompletionTime: &end2, Message: "Job node-hooks/" + b.Name + " completed"},
	}
	if diff := cmp.Diff(want, w.status); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"HookStarted: hook a began (try 1 of 1)",
		"HookSucceeded: hook a succeeded: Job node-hooks/" + a.Name + " completed",
		"HookStarted: hook b began (try 1 of 1)",
		"HookSucceeded: hook b succeeded: Job node-hooks/" + b.Name + " completed",
	}, w.happened); diff != "" {
		t.Errorf("happened (-want +got)\n%s", diff)
	}
	w.when = v1beta1.HookAfterDrain
	if w.pass(); len(w.jobs()) != 3 || len(w.status) != 3 {
		t.Errorf("the hook of the other time did not begin: %+v", w.status)
	}
}

func TestNoHooksForPhase(t *testing.T) {
	w := newWorld(t, none, jobHook("late", afterDrain))
	w.status = []v1beta1.HookStatus{{Name: "gone", State: v1beta1.HookRunning, Try: 1, StartTime: at(begin)}}
	out := w.pass()
	if !out.Done || len(out.Status) != 1 || len(w.jobs()) != 0 {
		t.Errorf("a hook that the policy no longer has keeps its status and counts for nothing: %+v", out)
	}
}

func TestFailedHookIsRetriedThenAbandoned(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*v1beta1.Hook)
		ends   string
		done   bool
		waits  string
	}{
		{"the policy goes on", func(*v1beta1.Hook) {}, "the drain continues without it", true, ""},
		{"the policy holds", holding, "the policy holds the drain", false, "hook a failed and the policy holds the drain; `lifeboat approve node-a` continues it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, none, jobHook("a", retries(1), c.change))
			w.pass()
			w.ends(w.onlyJob(), batchv1.JobFailed, "BackoffLimitExceeded")
			out := w.pass()
			if out.Waits != "hook a is tried again at 08:14:04 UTC (try 2 of 2)" || !out.Until.Equal(begin.Add(2*time.Second)) {
				t.Errorf("%+v", out)
			}
			if w.pass(); len(w.jobs()) != 1 {
				t.Error("it was tried again too soon")
			}
			w.after(2 * time.Second).pass()
			if len(w.jobs()) != 2 {
				t.Fatalf("%d Jobs", len(w.jobs()))
			}
			second := w.jobs()[1]
			w.ends(&second, batchv1.JobFailed, "DeadlineExceeded")
			out = w.after(time.Minute).pass()
			if out.Done != c.done || out.Waits != c.waits || !out.Until.IsZero() {
				t.Errorf("%+v", out)
			}
			first := w.jobs()[0].Name
			if diff := cmp.Diff([]string{
				"HookStarted: hook a began (try 1 of 2)",
				fmt.Sprintf("HookStarted: hook a is tried again (try 2 of 2): Job node-hooks/%s failed: its pod failed; see `kubectl -n node-hooks logs job/%s`", first, first),
				fmt.Sprintf("HookFailed: hook a failed and %s: Job node-hooks/%s did not finish within 60s; see `kubectl -n node-hooks logs job/%s`", c.ends, second.Name, second.Name),
			}, w.happened); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			before := w.status
			w.goAhead = w.now.Add(-time.Second)
			if out := w.after(time.Hour).pass(); out.Done != c.done {
				t.Error("an approval given before it failed lets it go on")
			}
			w.goAhead = w.now
			if out := w.pass(); !out.Done || len(w.jobs()) != 2 {
				t.Errorf("after a go-ahead: %+v", out)
			}
			if diff := cmp.Diff(before, w.status); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHangingJobIsDeleted(t *testing.T) {
	var propagation []string
	w := newWorld(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		var all client.DeleteOptions
		all.ApplyOptions(opts)
		propagation = append(propagation, string(*all.PropagationPolicy))
		return c.Delete(ctx, o, opts...)
	}}, jobHook("a", timeout(90*time.Second)))
	w.pass()
	name := w.onlyJob().Name
	if out := w.after(94 * time.Second).pass(); out.Done || !out.Until.Equal(begin.Add(95*time.Second)) {
		t.Errorf("%+v", out)
	}
	if out := w.after(time.Second).pass(); !out.Done || len(w.jobs()) != 0 {
		t.Errorf("%+v", out)
	}
	if got := w.status[0]; got.State != v1beta1.HookFailed || got.Message != "did not finish within 1m30s: Job node-hooks/"+name+" was created; it has no pod yet" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"Background"}, propagation); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJobDeletionIsRetried(t *testing.T) {
	away := errors.New("etcd is away")
	var fails error
	w := newWorld(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if fails != nil {
			return fails
		}
		return c.Delete(ctx, o, opts...)
	}}, jobHook("a"))
	w.pass()
	fails = away
	w.after(2 * time.Minute)
	if out, err := w.try(); !errors.Is(err, away) || out.Done || out.Status[0].State != v1beta1.HookRunning {
		t.Errorf("%+v, %v", out, err)
	}
	fails = nil
	if out := w.pass(); !out.Done || len(w.jobs()) != 0 {
		t.Errorf("%+v", out)
	}
}

func TestForbiddenJobDeletionDoesNotBlock(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
		return apierrors.NewForbidden(jobsResource, "x", errors.New("no"))
	}}, jobHook("a"))
	w.pass()
	if out := w.after(2 * time.Minute).pass(); !out.Done || w.status[0].State != v1beta1.HookFailed {
		t.Errorf("%+v", w.status)
	}
}

func TestDeletedJobCountsAsFailed(t *testing.T) {
	w := newWorld(t, none, jobHook("a", retries(1)))
	w.pass()
	j := w.onlyJob()
	if err := w.live.Delete(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if got := w.status[0]; got.State != v1beta1.HookFailed || got.CompletionTime != nil || got.Message != "Job node-hooks/"+j.Name+" was deleted before it finished" {
		t.Errorf("%+v", got)
	}
	if w.after(2 * time.Second).pass(); w.onlyJob().Name == j.Name {
		t.Error("the second try has the first's name")
	}
}

func TestJobsBypassCache(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewNotFound(jobsResource, key.Name)
	}}, jobHook("a"))
	if out := w.passes(2); out.Done || w.status[0].State != v1beta1.HookRunning {
		t.Errorf("%+v", w.status)
	}
}

func TestExistingJob(t *testing.T) {
	h := jobHook("a")
	made, err := hooks.Job(h, hooks.Subject{Interruption: "i-0abc", UID: "uid-1"}, 1, "node-hooks")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("was made before a crash", func(t *testing.T) {
		w := newWorld(t, none, h)
		if err := w.live.Create(t.Context(), made.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.ends(w.onlyJob(), batchv1.JobComplete, "")
		if out := w.pass(); out.Done || out.Until.After(w.now.Add(time.Second)) {
			t.Errorf("it has ended, and no one will say so again: %+v", out)
		}
		if out := w.pass(); !out.Done {
			t.Errorf("%+v", out)
		}
	})
	t.Run("belongs to another owner", func(t *testing.T) {
		w := newWorld(t, none, h)
		other := made.DeepCopy()
		other.Annotations = nil
		if err := w.live.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		w.pass()
		if want := "a Job node-hooks/" + made.Name + " is in the way that is not Lifeboat's: delete it"; w.status[0].Message != want {
			t.Errorf("got  %s\nwant %s", w.status[0].Message, want)
		}
	})
	t.Run("is an earlier interruption's", func(t *testing.T) {
		w := newWorld(t, none, h)
		if err := w.live.Create(t.Context(), made.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.subject.Since = begin.Add(-time.Hour)
		if w.pass(); len(w.jobs()) != 2 {
			t.Error("it was taken for this one's")
		}
	})
}

func TestRejectedJobSaysWhatToDo(t *testing.T) {
	noReason := func(code int32, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: text}}
	}
	forbidden := func(text string) error { return apierrors.NewForbidden(jobsResource, "x", errors.New(text)) }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no right", forbidden(`User "system:serviceaccount:lifeboat-system:lifeboat-controller" cannot create resource "jobs" in API group "batch" in the namespace "kafka"`),
			"creating Jobs in namespace kafka is forbidden: add it to the chart's value hooks.namespaces"},
		{"no quota", forbidden("exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=9, limited: count/jobs.batch=9"),
			`the quota of namespace kafka does not allow the Job: raise it, or write another job.namespace in the policy: jobs.batch "x" is forbidden: exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=9, limited: count/jobs.batch=9`},
		{"no namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kafka"),
			"namespace kafka does not exist: create it, or write another job.namespace in the policy"},
		{"admission", forbidden(`admission webhook "policies.example" denied the request: no`),
			`the API server rejected its Job: fix job.template in the policy, or the admission rule that rejects it: jobs.batch "x" is forbidden: admission webhook "policies.example" denied the request: no`},
		{"admission without a reason", noReason(http.StatusBadRequest, `admission webhook "validate.example" denied the request: no`),
			`the API server rejected its Job: fix job.template in the policy, or the admission rule that rejects it: admission webhook "validate.example" denied the request: no`},
		{"admission with a code of its own", noReason(http.StatusNotFound, `admission webhook "validate.example" denied the request: no such team`),
			`the API server rejected its Job: fix job.template in the policy, or the admission rule that rejects it: admission webhook "validate.example" denied the request: no such team`},
		{"a webhook of admission that fails", apierrors.NewInternalError(errors.New("failed calling webhook")),
			"the API server rejected its Job: fix job.template in the policy, or the admission rule that rejects it: Internal error occurred: failed calling webhook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.err }},
				jobHook("a", retries(1), func(h *v1beta1.Hook) { h.Job.Namespace = "kafka" }))
			w.jobNamespaces = []string{"kafka"}
			w.restart()
			out := w.pass()
			if w.status[0].Message != c.want || w.status[0].Try != 1 || out.Done || !out.Until.Equal(begin.Add(2*time.Second)) {
				t.Errorf("got  %+v\nwant %s", w.status[0], c.want)
			}
			if out := w.after(2 * time.Second).pass(); !out.Done || w.status[0].Try != 2 || w.status[0].CompletionTime == nil {
				t.Errorf("%+v", w.status[0])
			}
			if diff := cmp.Diff([]string{"HookFailed: hook a failed and the drain continues without it: " + c.want}, w.happened); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAPIServerOutageIsNoAttempt(t *testing.T) {
	var fails error
	fail := func() error { return fails }
	w := newWorld(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := fail(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
	}, jobHook("a"))
	for _, err := range []error{apierrors.NewTooManyRequests("busy", 1), apierrors.NewTimeoutError("slow", 1), context.DeadlineExceeded, errors.New("connection refused")} {
		fails = err
		out, err := w.try()
		if !errors.Is(err, fails) || len(out.Status) != 0 || out.Done || out.Waits == "" {
			t.Errorf("%v: %+v", err, out)
		}
	}
	fails = nil
	if w.pass(); len(w.jobs()) != 1 {
		t.Error("no Job")
	}
}

func TestInvalidTemplateIsNotRetried(t *testing.T) {
	w := newWorld(t, none, jobHook("a", retries(5), func(h *v1beta1.Hook) { h.Job.Template.Raw = []byte(`{"specs":{}}`) }))
	if out := w.pass(); !out.Done || w.status[0].Try != 1 || !strings.Contains(w.status[0].Message, `unknown field "specs"`) {
		t.Errorf("%+v", w.status)
	}
}

func TestStatusListIsBounded(t *testing.T) {
	w := newWorld(t, none, jobHook("a"))
	for i := range 8 {
		w.status = append(w.status, v1beta1.HookStatus{Name: fmt.Sprint("gone-", i), State: v1beta1.HookSucceeded, Try: 1, StartTime: at(begin)})
	}
	w.pass()
	if len(w.status) != 8 || w.status[0].Name != "gone-1" || w.status[7].Name != "a" {
		t.Errorf("%+v", w.status)
	}
}

// Despite crashes and lost status writes, all hooks finish, none starts before
// the previous one has ended, and no try has two Jobs.
func TestHooksSurviveCrashes(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, none, jobHook("a", retries(2)), jobHook("b", retries(1), holding), jobHook("c", timeout(3*time.Second)))
		made := map[string]bool{}
		done := false
		for pass := 0; pass < 400 && !done; pass++ {
			switch random.IntN(4) {
			case 0:
				w.restart()
			case 1:
				if _, err := w.try(); err != nil { // and what it said is not written
					t.Fatal(err)
				}
			case 2:
				w.after(time.Duration(random.IntN(5000)) * time.Millisecond)
			}
			for _, j := range w.jobs() {
				made[j.Name] = true
				if len(j.Status.Conditions) == 0 && random.IntN(8) == 0 {
					w.ends(&j, []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}[random.IntN(2)], "")
				}
			}
			out := w.pass()
			done = out.Done
			if strings.Contains(out.Waits, "lifeboat approve") {
				w.goAhead = w.after(time.Second).now
			}
		}
		if !done || len(w.status) != 3 {
			t.Fatalf("seed %d: not done: %+v", seed, w.status)
		}
		tries := 0
		for i, s := range w.status {
			tries += int(s.Try)
			if s.Name != w.hooks[i].Name || s.CompletionTime == nil || s.Try > w.hooks[i].Retries+1 {
				t.Errorf("seed %d: %+v", seed, s)
			}
			if i > 0 && s.StartTime.Before(w.status[i-1].CompletionTime) {
				t.Errorf("seed %d: %s began before %s had ended", seed, s.Name, w.status[i-1].Name)
			}
		}
		for _, j := range w.jobs() {
			made[j.Name] = true
		}
		if len(made) > tries {
			t.Errorf("seed %d: %d Jobs for %d tries", seed, len(made), tries)
		}
		w.stop()
	}
}

func TestJobCannotUseLifeboatServiceAccount(t *testing.T) {
	as := func(field, account string) func(*v1beta1.Hook) {
		return func(h *v1beta1.Hook) {
			h.Job.Template.Raw = []byte(`{"spec":{"template":{"spec":{"` + field + `":"` + account + `","containers":[{"name":"main","image":"tool:1"}]}}}}`)
		}
	}
	for _, field := range []string{"serviceAccountName", "serviceAccount"} {
		for account, want := range map[string]int{"lifeboat-controller": 0, "lifeboat-agent": 0, "kafka-admin": 1} {
			w := newWorld(t, none, jobHook("a", as(field, account)))
			if w.pass(); len(w.jobs()) != want {
				t.Errorf("%s %s: %d jobs, want %d: %s", field, account, len(w.jobs()), want, w.status[0].Message)
			}
		}
	}
}

func TestJobNeedsAllowedNamespace(t *testing.T) {
	for _, c := range []struct {
		name, wanted string
		named        []string
		want         string
		why          string
	}{
		{"none is named", "kafka", nil, "", "hooks may not run Jobs: name a namespace for them in the chart's value hooks.namespaces"},
		{"the only one", "", []string{"kafka"}, "kafka", ""},
		{"one of two", "kafka", []string{"a", "kafka"}, "kafka", ""},
		{"neither of two", "", []string{"a", "b"}, "", "the hook has no job.namespace: write one of a, b"},
		{"another", "kafka", []string{"a"}, "", "hooks may not run Jobs in namespace kafka: add it to the chart's value hooks.namespaces, or write another job.namespace"},
		{"Lifeboat's own", "lifeboat-system", []string{"lifeboat-system"}, "", "hooks may not run Jobs in Lifeboat's own namespace lifeboat-system: write another job.namespace"},
		{"Lifeboat's own by default", "", []string{"lifeboat-system"}, "", "hooks may not run Jobs in Lifeboat's own namespace lifeboat-system: write another job.namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, none, jobHook("a", retries(3), func(h *v1beta1.Hook) { h.Job.Namespace = c.wanted }))
			w.jobNamespaces = c.named
			w.restart()
			w.pass()
			if c.want != "" {
				if got := w.onlyJob().Namespace; got != c.want {
					t.Errorf("in %s, want %s", got, c.want)
				}
				return
			}
			if s := w.status[0]; len(w.jobs()) != 0 || s.State != v1beta1.HookFailed || s.CompletionTime == nil || s.Message != c.why {
				t.Errorf("%d Jobs, %+v", len(w.jobs()), s)
			}
		})
	}
}
