package replica_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/replica"
)

// A read with a random lag returns a value that the resource had within the lag, and after the lag
// the current one. Both old and new values occur, in any order.
func TestRandomLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3 * time.Second
		v := replica.New[int](replica.Lag{Most: most, Random: rand.New(rand.NewPCG(1, 2))})
		random := rand.New(rand.NewPCG(3, 4))
		type change struct {
			at    time.Time
			value int // 0: gone
		}
		changes := []change{{time.Now(), 0}}
		var old, current, backwards int
		last := 0
		for value := 1; value <= 2000; value++ {
			time.Sleep(time.Duration(random.Int64N(int64(most))))
			now := time.Now()
			if random.IntN(5) == 0 {
				v.Delete("a")
				changes = append(changes, change{now, 0})
			} else {
				v.Put("a", value)
				changes = append(changes, change{now, value})
			}
			time.Sleep(time.Duration(random.Int64N(int64(most) * 2)))
			got, ok := v.Get("a")
			if ok != (got != 0) {
				t.Fatalf("read %d, %v", got, ok)
			}
			now = time.Now()
			i := len(changes) - 1
			possible := []int{changes[i].value}
			for ; i > 0 && changes[i].at.After(now.Add(-most)); i-- {
				possible = append(possible, changes[i-1].value)
			}
			if !slices.Contains(possible, got) {
				t.Fatalf("read %d, want one of %v", got, possible)
			}
			if got == possible[0] {
				current++
			} else {
				old++
			}
			if got < last {
				backwards++
			}
			last = got
		}
		if old == 0 || current == 0 || backwards == 0 {
			t.Errorf("%d old, %d current and %d older reads than the one before, want some of each", old, current, backwards)
		}
	})
}

// Without a lag, a read returns the last value, and a resource that is gone is not kept.
func TestNoLag(t *testing.T) {
	v := replica.New[string](replica.Lag{})
	v.Put("a", "x")
	v.Put("b", "y")
	v.Put("a", "z")
	v.Delete("b")
	if got := v.All(); !slices.Equal(got, []string{"z"}) {
		t.Errorf("All() = %q", got)
	}
	if got, ok := v.Get("b"); ok {
		t.Errorf("Get of a deleted resource = %q", got)
	}
}

// BenchmarkAll reads 5,000 resources, of which 100 have changed.
func BenchmarkAll(b *testing.B) {
	v := replica.New[*int](replica.Lag{Most: time.Minute, Random: rand.New(rand.NewPCG(1, 2))})
	for i := range 5000 {
		v.Put(time.Duration(i).String(), new(int))
	}
	for i := range 100 {
		v.Put(time.Duration(i).String(), new(int))
	}
	for b.Loop() {
		v.All()
	}
}
