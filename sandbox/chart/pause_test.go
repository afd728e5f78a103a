//go:build e2e

package chart_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestPausesNameTheirAuthorAndEnd(t *testing.T) {
	c := clientOf(t, operator(t, alice))
	pause := func(change func(*v1beta1.Pause)) *v1beta1.Pause {
		now := time.Now().Truncate(time.Second)
		p := &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: v1beta1.PauseSpec{
			By: alice, StartTime: metav1.NewTime(now), Until: metav1.NewTime(now.Add(24 * time.Hour)),
		}}
		if change != nil {
			change(p)
		}
		return p
	}
	until(t, "the policy to be in force", func() (bool, error) {
		forged := pause(func(p *v1beta1.Pause) { p.Spec.By = bob })
		err := c.Create(t.Context(), forged)
		if err == nil {
			remove(t, forged)
		}
		return err != nil, err
	})
	for name, test := range map[string]struct {
		change func(*v1beta1.Pause)
		want   string
	}{
		"for another user":     {func(p *v1beta1.Pause) { p.Spec.By = bob }, `spec.by is "bob@example.com", and you are "alice@example.com"`},
		"for 25 hours":         {func(p *v1beta1.Pause) { p.Spec.Until = metav1.NewTime(p.Spec.StartTime.Add(25 * time.Hour)) }, "24 hours at most"},
		"by a free name":       {func(p *v1beta1.Pause) { p.Name = "mine" }, "the name must be cluster"},
		"of a pool as cluster": {func(p *v1beta1.Pause) { p.Spec.NodePool = "web" }, "the name must be cluster"},
		"with a finalizer":     {func(p *v1beta1.Pause) { p.Finalizers = []string{"example.com/kept"} }, "has no finalizers"},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.Create(t.Context(), pause(test.change)), test.want) })
	}
	p := pause(nil)
	check(t, c.Create(t.Context(), p), "")
	t.Cleanup(func() { remove(t, p) })
	if p.Spec.Stops != v1beta1.PauseDeferrable {
		t.Errorf("by default it stops %q", p.Spec.Stops)
	}
	check(t, c.Create(t.Context(), pause(func(p *v1beta1.Pause) { p.Name, p.Spec.NodePool = "nodepool-web", "web" })), "")
	t.Cleanup(func() { remove(t, pause(func(p *v1beta1.Pause) { p.Name = "nodepool-web" })) })
	other := clientOf(t, operator(t, bob))
	longer := p.DeepCopy()
	longer.Spec.Note = "forged"
	check(t, other.Update(t.Context(), longer), `spec.by is "alice@example.com", and you are "bob@example.com"`)
	check(t, other.Delete(t.Context(), p), "")
}
