//go:build e2e

package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// stage is the shared world for one test.
type stage struct {
	*world
	t *testing.T
}

func (s *stage) until(what string, within time.Duration, ok func(context.Context) (bool, error)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	if err := wait(ctx, what, ok); err != nil {
		s.t.Fatalf("%v (%s)", err, within)
	}
}

// interrupted boots the node that the test interrupts, and terminates it after the test.
func (s *stage) interrupted(pool string, tags ...string) ec2.Instance {
	s.t.Helper()
	began := time.Now()
	in, err := s.boot(pool, &ec2.SpotOptions{}, tags...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if _, err := s.EC2().Terminate([]string{in.ID}); err != nil {
			s.t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.waitReady(ctx, in); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("node %s (%s) was Ready %.1f s after its launch", in.PrivateDNSName, in.ID, time.Since(began).Seconds())
	return in
}

// apply creates objects, and deletes them after the test.
func (s *stage) apply(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.client.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() {
			err := s.client.Delete(context.Background(), o, client.GracePeriodSeconds(0),
				client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				s.t.Error(err)
			}
		})
	}
}

// policy creates a policy for a pool.
func (s *stage) policy(pool, rules string) {
	s.t.Helper()
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	text := fmt.Sprintf("{nodes: {matchLabels: {%s: %s}}, rules: %s}", poolLabel, pool, rules)
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		s.t.Fatal(err)
	}
	s.apply(p)
}

// place applies a server and returns its pods once all are Ready on the node.
func (s *stage) place(w web, on ec2.Instance) []string {
	s.t.Helper()
	s.apply(w.objects()...)
	return names(s.untilReady(w, func(node string) bool { return node == on.PrivateDNSName }))
}

// untilReady waits until a server has all its pods and no others, each Ready on a node that fits.
func (s *stage) untilReady(w web, fits func(node string) bool) []corev1.Pod {
	s.t.Helper()
	var pods []corev1.Pod
	s.until("pods of "+w.Name+" to be Ready on their nodes", 3*time.Minute, func(ctx context.Context) (bool, error) {
		var err error
		if pods, err = s.pods(ctx, w.Name); err != nil {
			return false, err
		}
		ready := 0
		for i := range pods {
			if p := &pods[i]; isReady(p) && fits(p.Spec.NodeName) {
				ready++
			}
		}
		return ready == w.Replicas && len(pods) == w.Replicas, fmt.Errorf("%d of %d pods are: %s", ready, len(pods), states(pods))
	})
	return pods
}

func names(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}

func (s *stage) pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.client.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"app": app})
	return list.Items, err
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// journalDir is the directory of the journals on this machine.
func (s *stage) journalDir() string { return s.SharedDir() }

// readJournal reads the journal of a pod; it is kept after its node is gone.
func (s *stage) readJournal(pod string) podJournal {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.journalDir(), pod+".jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := parseJournal(string(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *stage) readJournals(pods []string) []podJournal {
	s.t.Helper()
	var out []podJournal
	for _, name := range pods {
		out = append(out, s.readJournal(name))
	}
	return out
}

// otherJournals reads the journals of an app's other pods.
func (s *stage) otherJournals(app string, but []string) []podJournal {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.journalDir(), app+"-*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range but {
		known[name+".jsonl"] = true
	}
	var out []podJournal
	for _, file := range files {
		if name := filepath.Base(file); !known[name] {
			out = append(out, s.readJournal(name[:len(name)-len(".jsonl")]))
		}
	}
	return out
}

// load starts a load on a server and returns once requests succeed.
func (s *stage) load(w web, path string, args ...string) *load {
	s.t.Helper()
	svc := &corev1.Service{}
	if err := s.client.Get(s.t.Context(), types.NamespacedName{Namespace: "default", Name: w.Name}, svc); err != nil {
		s.t.Fatal(err)
	}
	l := &load{stage: s, name: "load-" + w.Name}
	if err := os.RemoveAll(l.file()); err != nil { // from an earlier run of the same test
		s.t.Fatal(err)
	}
	s.apply(loadPod(l.name, "http://"+svc.Spec.ClusterIP+path, args))
	s.until(l.name+" to count", 30*time.Second, func(context.Context) (bool, error) {
		seen, err := l.sofar()
		return !seen.Began.IsZero(), err
	})
	return l
}

// load is a running load.
type load struct {
	*stage
	name string
}

func (l *load) file() string { return filepath.Join(l.journalDir(), l.name+".json") }

// sofar returns the results up to about a second ago.
func (l *load) sofar() (traffic, error) {
	var seen traffic
	text, err := os.ReadFile(l.file())
	if errors.Is(err, fs.ErrNotExist) {
		return seen, nil
	}
	if err != nil {
		return seen, err
	}
	return seen, json.Unmarshal(text, &seen)
}

// stop ends the load and returns its results.
func (l *load) stop() traffic {
	l.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: l.name}}
	if err := l.client.Delete(l.t.Context(), pod); err != nil {
		l.t.Fatal(err)
	}
	var seen traffic
	l.until(l.name+" to end", 30*time.Second, func(context.Context) (bool, error) {
		var err error
		seen, err = l.sofar()
		return seen.Done, err
	})
	l.t.Logf("FIGURES %s: %s: %s", l.t.Name(), l.name, seen)
	for _, f := range seen.Failures[:min(10, len(seen.Failures))] {
		l.t.Logf("  %s %s after %d ms: %s", clock(f.Time), f.Kind, f.Took, f.Error)
	}
	return seen
}

// reclaim reclaims a spot instance, and returns when the warning was sent.
func (s *stage) reclaim(in ec2.Instance, notice time.Duration) time.Time {
	s.t.Helper()
	warned := time.Now()
	if err := s.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{Notice: notice}); err != nil {
		s.t.Fatal(err)
	}
	return warned
}

// waitPowerOff waits until an instance's power is off, and returns when that happened.
func (s *stage) waitPowerOff(in ec2.Instance, within time.Duration) time.Time {
	s.t.Helper()
	s.until("the power of "+in.ID+" to go", within, func(context.Context) (bool, error) {
		return !s.powerOff(in.ID).IsZero(), nil
	})
	return s.powerOff(in.ID)
}

// record reads the Interruption of an instance; nil if it has none.
func (s *stage) record(ctx context.Context, id string) (*v1beta1.Interruption, error) {
	in := &v1beta1.Interruption{}
	err := s.client.Get(ctx, types.NamespacedName{Name: id}, in)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return in, err
}

// sleep waits a fixed time, for checks that something does not happen: no event marks the end of
// those.
func (s *stage) sleep(d time.Duration) {
	s.t.Helper()
	select {
	case <-s.t.Context().Done():
		s.t.Fatal("the test was cancelled")
	case <-time.After(d):
	}
}

// check fails the test for each error.
func (s *stage) check(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Error(err)
		}
	}
}
