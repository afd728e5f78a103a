package interruption

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// planted are defects that the worlds of people must find, by the promise that each breaks.
var planted = map[string]func(*modelRun, *Options){
	lastCalls:   func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, gated: true} },
	belongs:     func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, read: keepsWithdrawn} },
	passedDate:  func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, evict: hurriesAfterDate} },
	handledOnce: func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, read: forgetsHandled()} },
	firstEnd: func(r *modelRun, o *Options) {
		o.Client = defective{Client: o.Client, run: r, read: hidesBehindRequest}
	},
	worksOn:      func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, evict: worksAnHour} },
	firstReady:   func(_ *modelRun, o *Options) { o.SurgeDisabled = true },
	saysWhy:      func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, mute: true} },
	overridesEnd: func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, evict: deletesIfRefused} },
	hooksBegun:   func(_ *modelRun, o *Options) { o.HookRunner = eagerHooks{o.HookRunner} },
	backsOff:     func(r *modelRun, o *Options) { o.Client = defective{Client: o.Client, run: r, insists: true} },
}

// seeds are those of runs that found the defects; others follow if the product or the model has changed since.
var seeds = map[string]uint64{lastCalls: 17, handledOnce: 5, firstEnd: 148, worksOn: 6, firstReady: 144, overridesEnd: 89, hooksBegun: 308, backsOff: 2}

// TestModelFindsBrokenPromises plants each defect into worlds of people until one breaks its promise.
func TestModelFindsBrokenPromises(t *testing.T) {
	const runs = 2000
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for _, promise := range slices.Sorted(maps.Keys(planted)) {
		plant := planted[promise]
		if !promises[promise] && !allPromises {
			continue // the product breaks it without a defect
		}
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			for at := range uint64(runs) {
				seed := seeds[promise] + at
				r := playModel(t, seed, metrics, func(r *modelRun) { r.plant, r.people, r.promise = plant, true, promise })
				if at := slices.IndexFunc(r.wrong, func(wrong string) bool { return strings.HasPrefix(wrong, promise) }); at >= 0 {
					t.Logf("found in run %d after %s: %.300s", seed, time.Since(began).Round(time.Second/10), r.wrong[at])
					return
				}
			}
			t.Errorf("%d runs did not find it", runs)
		})
	}
}

// defective is a client with a defect.
type defective struct {
	client.Client
	run *modelRun
	// evict is called in place of an eviction.
	evict func(context.Context, defective, *corev1.Pod, *policyv1.Eviction) error
	// read changes what is read.
	read func(*modelRun, *v1beta1.Interruption)
	// mute drops the conditions of pods, insists repeats what is refused, and gated stops no pod of a node
	// whose patches are refused.
	mute, insists, gated bool
}

func (c defective) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, k, o, opts...)
	if in, ok := o.(*v1beta1.Interruption); ok && err == nil && c.read != nil {
		c.run.mu.Lock()
		defer c.run.mu.Unlock()
		c.read(c.run, in)
	}
	return err
}

func (c defective) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.insist(func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c defective) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if pod, isPod := o.(*corev1.Pod); isPod && c.gated {
		if err := c.gate(pod); err != nil {
			return err
		}
	}
	return c.insist(func() error { return c.Client.Delete(ctx, o, opts...) })
}

// insist repeats a call that is refused.
func (c defective) insist(call func() error) error {
	err := call()
	for tries := 0; c.insists && tries < 200 && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)); tries++ {
		err = call()
	}
	return err
}

func (c defective) Status() client.SubResourceWriter {
	if c.mute {
		return muteStatus{c.Client.Status()}
	}
	return c.Client.Status()
}

func (c defective) SubResource(name string) client.SubResourceClient {
	sub := c.Client.SubResource(name)
	if c.gated {
		c.evict = needsTheNode
	}
	if c.evict != nil && name == "eviction" {
		return defectiveEviction{sub, c}
	}
	if c.mute && name == "status" {
		return muteSubResource{sub}
	}
	return sub
}

type muteStatus struct{ client.SubResourceWriter }

func (w muteStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if _, isPod := o.(*corev1.Pod); isPod {
		return nil
	}
	return w.SubResourceWriter.Patch(ctx, o, p, opts...)
}

type muteSubResource struct{ client.SubResourceClient }

func (w muteSubResource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return muteStatus{w.SubResourceClient}.Patch(ctx, o, p, opts...)
}

type defectiveEviction struct {
	client.SubResourceClient
	of defective
}

func (e defectiveEviction) Create(ctx context.Context, o, body client.Object, opts ...client.SubResourceCreateOption) error {
	pod, isPod := o.(*corev1.Pod)
	eviction, isEviction := body.(*policyv1.Eviction)
	if !isPod || !isEviction {
		return e.SubResourceClient.Create(ctx, o, body, opts...)
	}
	return e.of.evict(ctx, e.of, pod, eviction)
}

func (c defective) evictPlainly(ctx context.Context, pod *corev1.Pod, eviction *policyv1.Eviction) error {
	return c.Client.SubResource("eviction").Create(ctx, pod, eviction)
}

// needsTheNode evicts only while the node can be patched.
func needsTheNode(ctx context.Context, c defective, pod *corev1.Pod, e *policyv1.Eviction) error {
	if err := c.gate(pod); err != nil {
		return err
	}
	return c.evictPlainly(ctx, pod, e)
}

func (c defective) gate(pod *corev1.Pod) error {
	for _, f := range c.run.refusals {
		if f.write == writeNode && f.covers(pod.Spec.NodeName, c.run.c.Now()) {
			return f.err
		}
	}
	return nil
}

// hurriesAfterDate gives a grace of two seconds once a planned date has passed.
func hurriesAfterDate(ctx context.Context, c defective, pod *corev1.Pod, e *policyv1.Eviction) error {
	var list v1beta1.InterruptionList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		for _, n := range list.Items[i].Spec.Notices {
			if list.Items[i].Spec.NodeName == pod.Spec.NodeName && n.Kind == notice.KindScheduledChange && n.Deadline.Time.Time.Before(c.run.c.Now()) {
				two := int64(2)
				return c.Client.Delete(ctx, pod, client.GracePeriodSeconds(two), client.Preconditions{UID: e.DeleteOptions.Preconditions.UID})
			}
		}
	}
	return c.evictPlainly(ctx, pod, e)
}

// worksAnHour evicts no pod for a request that is older than an hour.
func worksAnHour(ctx context.Context, c defective, pod *corev1.Pod, e *policyv1.Eviction) error {
	var list v1beta1.InterruptionList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		for _, n := range list.Items[i].Spec.Notices {
			if list.Items[i].Spec.NodeName == pod.Spec.NodeName && n.Kind == notice.KindRequested && c.run.c.Now().Sub(n.Time.Time) > time.Hour {
				return nil
			}
		}
	}
	return c.evictPlainly(ctx, pod, e)
}

// deletesIfRefused deletes a pod whose budget refuses its eviction.
func deletesIfRefused(ctx context.Context, c defective, pod *corev1.Pod, e *policyv1.Eviction) error {
	err := c.evictPlainly(ctx, pod, e)
	if apierrors.IsTooManyRequests(err) {
		return c.Client.Delete(ctx, pod, client.Preconditions{UID: e.DeleteOptions.Preconditions.UID})
	}
	return err
}

// keepsWithdrawn does not see that a request or a failed check was withdrawn.
func keepsWithdrawn(_ *modelRun, in *v1beta1.Interruption) {
	for i := range in.Spec.Notices {
		if n := &in.Spec.Notices[i]; n.Kind == notice.KindRequested || n.Kind == notice.KindInstanceStatus {
			n.Withdrawn = false
		}
	}
}

// forgetsHandled remembers the first message about a handled change, in place of the change.
func forgetsHandled() func(*modelRun, *v1beta1.Interruption) {
	first := map[change]string{}
	return func(_ *modelRun, in *v1beta1.Interruption) {
		handled := handledIn(in)
		forgetHandled(in, func(key string) bool { return strings.HasPrefix(key, "change-") })
		for _, n := range in.Spec.Notices {
			if !isHandledNotice(n, handled) {
				continue
			}
			if first[changeOf(&n)] == "" {
				first[changeOf(&n)] = n.ID
			}
			if first[changeOf(&n)] == n.ID {
				recordtest.Handle(in, n.ID)
			}
		}
	}
}

// hidesBehindRequest sees no reclaim while a request stands.
func hidesBehindRequest(_ *modelRun, in *v1beta1.Interruption) {
	if slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool {
		return n.Kind == notice.KindRequested && !n.Withdrawn && n.Deadline != nil
	}) {
		in.Spec.Notices = slices.DeleteFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.Kind == notice.KindSpotInterruption })
	}
}

// eagerHooks runs the hooks of all times at the first opportunity.
type eagerHooks struct{ HookRunner }

// Hooks runs the hooks that wait for the end of the drain before it.
func (h eagerHooks) Hooks(ctx context.Context, run runner.HookRun) (runner.HookOutcome, error) {
	if early := run; run.When == v1beta1.HookBeforeDrain {
		early.When = v1beta1.HookAfterDrain
		if out, err := h.HookRunner.Hooks(ctx, early); err != nil || !out.Done {
			return out, err
		}
	}
	return h.HookRunner.Hooks(ctx, run)
}
