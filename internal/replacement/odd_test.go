package replacement

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

var errOdd = errors.New("odd")

// FuzzUnusualObjects: no object in the API causes a panic, and every decision has a
// reason.
func FuzzUnusualObjects(f *testing.F) {
	for _, o := range []*unstructured.Unstructured{poolObject(), claimObject("a"), poolObject(set("1", "spec", "limits", "cpu"))} {
		text, err := json.Marshal(o.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		`{}`, `[]`, `{"spec":{"template":{"spec":{"requirements":[null,{"key":"","operator":"In"}]}}}}`, `{"metadata":{"labels":null}}`,
		`{"spec":{"limits":{"cpu":"x"}}}`, `{"spec":{"template":{"spec":null}}}`, `{"status":{"conditions":[{"lastTransitionTime":5}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o map[string]any
		if json.Unmarshal(text, &o) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: o}
		facts := facts()
		if pool, err := ReadPool(u); err == nil {
			facts.Pool = pool
		}
		if claim, err := ReadClaim(u); err == nil {
			facts.Interrupted, facts.Claims = claim, []*Claim{claim}
			_, _ = Tightened(claim, facts.Deadline, noon)
			_ = Follow(Following{Now: noon, Was: Status{Phase: v1beta1.ReplacementOrdered}, Claim: claim})
		}
		_, _ = ReadClass(u)
		d := Decide(facts)
		if d.Status.Reason == "" || d.Status.Phase == "" {
			t.Errorf("no reason: %+v", d.Status)
		}
		if d.Order != nil {
			if _, err := json.Marshal(d.Order.Object); err != nil {
				t.Errorf("what is ordered cannot be written: %v", err)
			}
		}
	})
}

// TestOrdersRespectLimits: with random pods, limits and neighbours, an order
// covers the pods, respects the limits, and is one of three.
func TestOrdersRespectLimits(t *testing.T) {
	t.Parallel()
	ordered := 0
	for seed := range uint64(2000) {
		d := rand.New(rand.NewPCG(seed, 1))
		f := facts(func(f *Facts) {
			f.Pods = nil
			for i := range 1 + d.IntN(5) {
				f.Pods = append(f.Pods, pod(string(rune('a'+i)), []string{"100m", "1", "2500m"}[d.IntN(3)]))
			}
			f.Movable, f.Unlaunched = len(f.Pods), d.IntN(6)
			f.Pool.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(d.IntN(12)), resource.DecimalSI)}
			f.Pool.Resources = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(d.IntN(4)), resource.DecimalSI)}
			for range d.IntN(3) {
				f.Claims = append(f.Claims, otherClaim("1"))
			}
			for i := range d.IntN(3) {
				f.Others = append(f.Others, other(string(rune('x'+i)), []string{"500m", "2", "8"}[d.IntN(3)]))
			}
			f.Now = noon.Add(time.Duration(d.IntN(100)) * time.Second)
		})
		got := Decide(f)
		if got.Order == nil {
			continue
		}
		ordered++
		claim, err := ReadClaim(got.Order)
		if err != nil {
			t.Fatal(err)
		}
		if f.Unlaunched >= MostUnlaunched {
			t.Fatalf("seed %d: ordered beside %d others", seed, f.Unlaunched)
		}
		if want := total(f.Pods); !within(want, claim.Requests) {
			t.Fatalf("seed %d: %v does not cover %v", seed, claim.Requests, want)
		}
		after := f.Pool.Resources.DeepCopy()
		add(after, claim.Requests)
		for _, c := range f.Claims {
			add(after, c.Requests)
		}
		if cpu := f.Pool.Limits[corev1.ResourceCPU]; after.Cpu().Cmp(cpu) > 0 {
			t.Fatalf("seed %d: %s of cpu, limit %s", seed, after.Cpu(), cpu.String())
		}
		if again := Decide(f); again.Order.GetName() != got.Order.GetName() {
			t.Fatalf("seed %d: another name", seed)
		}
	}
	if ordered < 50 {
		t.Errorf("only %d of the worlds order anything", ordered)
	}
}
