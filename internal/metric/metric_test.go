package metric_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

func TestClosedCountersBeginAtZero(t *testing.T) {
	two := metric.Definition{Name: "x_total", Help: "X.", Labels: []metric.Label{metric.OneOf("a", "1", "2"), metric.OneOf("b", "3", "4", "5")}}
	if n := testutil.CollectAndCount(two.NewCounters()); n != 6 {
		t.Errorf("%d series, want 6", n)
	}
	two.Labels[1] = metric.Open("b", "anything")
	if n := testutil.CollectAndCount(two.NewCounters()); n != 0 {
		t.Errorf("%d series of an open metric, want none", n)
	}
	two.Labels[1], two.Lazy = metric.OneOf("b", "3"), true
	if n := testutil.CollectAndCount(two.NewCounters()); n != 0 {
		t.Errorf("%d series of a lazy metric, want none", n)
	}
}

func TestRegisterNamesPackage(t *testing.T) {
	d := metric.Definition{Name: "x_total", Help: "X."}
	if err := metric.Register(nil, "x", d.NewCounter()); err != nil {
		t.Error(err)
	}
	registry := prometheus.NewRegistry()
	if err := metric.Register(registry, "x", d.NewCounter()); err != nil {
		t.Error(err)
	}
	err := metric.Register(registry, "hooks", d.NewCounter())
	if err == nil || !strings.HasPrefix(err.Error(), "registering the metrics of hooks: ") {
		t.Errorf("registered twice: %v", err)
	}
}

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := metric.RegisterBuild(registry, "agent"); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry, "lifeboat_build_info"); n != 1 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}
