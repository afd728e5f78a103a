//go:build e2e

package chart_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// randomWrites is how many writes a normal run tries; LIFEBOAT_WRITES replaces it.
	randomWrites = 2100
	// writesPerCast is after how many writes the stored objects are replaced by others.
	writesPerCast = 3000
	// writers try writes at the same time.
	writers = 6
)

// attempt is one write, as a dry run.
type attempt struct {
	text string // who writes what
	may  bool   // what the oracle says
	do   func(ctx context.Context) error
}

// TestAdmissionMatchesOracle tries random writes of all users that the chart's admission policies are
// about, and of others. The API server must accept exactly what the oracle accepts.
// LIFEBOAT_WRITES_SEED repeats a run, LIFEBOAT_WRITES sets the number of writes.
func TestAdmissionMatchesOracle(t *testing.T) {
	seed, count := number(t, "LIFEBOAT_WRITES_SEED", rand.Uint64()), number(t, "LIFEBOAT_WRITES", randomWrites)
	t.Logf("to repeat: LIFEBOAT_WRITES_SEED=%d LIFEBOAT_WRITES=%d", seed, count)
	w := newWriters(t)
	results := &outcomes{of: map[string]int{}}
	start := time.Now()
	for first := uint64(0); first < count && !t.Failed(); first += writesPerCast {
		cast := w.newCast(rand.New(rand.NewPCG(seed, first)))
		var all sync.WaitGroup
		for i := range uint64(writers) {
			all.Go(func() {
				for n := first + i; n < min(count, first+writesPerCast) && !t.Failed(); n += writers {
					results.add(cast.try(seed, n))
				}
			})
		}
		all.Wait()
		cast.remove()
	}
	tried := 0
	for _, n := range results.of {
		tried += n
	}
	t.Logf("%d writes in %s", tried, time.Since(start).Round(time.Millisecond))
	if !t.Failed() {
		results.check(t)
	}
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// try makes one write, and returns a word for its result.
func (c *cast) try(seed, n uint64) (topic, result string) {
	names := slices.Sorted(maps.Keys(c.topics))
	topic = names[n%uint64(len(names))]
	for {
		a, err := c.topics[topic](rand.New(rand.NewPCG(seed, 1<<32+n)))
		if err == nil {
			err = a.do(c.t.Context())
		}
		switch {
		case apierrors.IsConflict(err) && c.t.Context().Err() == nil:
			continue // a controller of Kubernetes wrote the object
		case err == nil && a.may:
			return topic, "accepted"
		case err == nil:
			c.t.Errorf("write %d: the API server accepts it, and must refuse it: %s", n, a.text)
		case a.may || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
			c.t.Errorf("write %d: the API server answers %v, and must accept it (%t): %s", n, err, a.may, a.text)
		}
		return topic, refuser(err)
	}
}

var policyName = regexp.MustCompile(`ValidatingAdmissionPolicy '([a-z-]+)'`)

// refuser names what refused a write.
func refuser(err error) string {
	if err == nil {
		return "accepted"
	}
	if m := policyName.FindStringSubmatch(err.Error()); m != nil {
		return "refused by " + m[1]
	}
	if apierrors.IsInvalid(err) {
		return "refused by the schema"
	}
	return "refused by RBAC"
}

// outcomes counts results.
type outcomes struct {
	mu sync.Mutex
	of map[string]int
}

func (o *outcomes) add(topic, result string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[topic+": "+result]++
}

// check fails if no random write reached one of the answers that the test is about.
func (o *outcomes) check(t *testing.T) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(o.of)) {
		t.Logf("%-50s %6d", key, o.of[key])
	}
	for _, topic := range []struct{ topic, policy string }{
		{"pods", "controller"}, {"nodes", "controller"}, {"jobs", "hooks"}, {"nodenotices", "agent"},
		{"interruptions", "interruptions"}, {"pauses", "pauses"}, {"nodeclaims", "karpenter"},
	} {
		for _, result := range []string{"accepted", "refused by lifeboat-" + topic.policy} {
			if o.of[topic.topic+": "+result] == 0 {
				t.Errorf("no write of %s was %s", topic.topic, result)
			}
		}
	}
}

// change is one thing that a random write does to an object, with a name for messages.
type change[O any] struct {
	name string
	do   func(rnd *rand.Rand, o O)
}

// changed returns a copy of an object with up to three random changes, and their names.
func changed[O client.Object](rnd *rand.Rand, o O, changes []change[O]) (O, string) {
	after := o.DeepCopyObject().(O)
	var names []string
	for range 1 + rnd.IntN(3) {
		one := changes[rnd.IntN(len(changes))]
		one.do(rnd, after)
		names = append(names, one.name)
	}
	return after, fmt.Sprintf("%T %s: %s", o, o.GetName(), strings.Join(names, ", "))
}

// write writes a changed object by one of the ways that clients have, unless others changed it since.
func write(rnd *rand.Rand, c client.Client, before, after client.Object) func(context.Context) error {
	after.SetResourceVersion(before.GetResourceVersion())
	if rnd.IntN(3) == 0 {
		return func(ctx context.Context) error { return c.Update(ctx, after, client.DryRunAll) }
	}
	return patchOf(c, before, after)
}

func patchOf(c client.Client, before, after client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.DryRunAll)
	}
}

func pick[T any](rnd *rand.Rand, all ...T) T { return all[rnd.IntN(len(all))] }
