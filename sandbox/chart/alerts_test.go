package chart_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestPrometheusRuleHasTheAlerts(t *testing.T) {
	var rule *unstructured.Unstructured
	for _, o := range render(t, with(t, "metrics: {prometheusRule: {enabled: true, namespace: monitoring, labels: {release: prometheus}}}")).Objects {
		if o.GetKind() == "PrometheusRule" {
			rule = o
		}
	}
	if rule == nil || rule.GetNamespace() != "monitoring" || rule.GetLabels()["release"] != "prometheus" {
		t.Fatalf("the rule is %v", rule)
	}
	text, err := os.ReadFile(chartDir + "/alerts/lifeboat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rule.Object["spec"]); diff != "" {
		t.Errorf("the spec is not the file (-file +rule):\n%s", diff)
	}
	if !strings.Contains(string(text), "{{ $labels.source }}") {
		t.Error("the file has no templates of Prometheus, which Helm could have expanded")
	}
	for _, o := range render(t, with(t, "")).Objects {
		if o.GetKind() == "PrometheusRule" {
			t.Error("the rule is there although it is not enabled")
		}
	}
}

func TestDashboardsAreConfigMaps(t *testing.T) {
	found := 0
	for _, o := range render(t, with(t, "metrics: {dashboards: {enabled: true}}")).Objects {
		if o.GetKind() != "ConfigMap" || o.GetLabels()["grafana_dashboard"] != "1" {
			continue
		}
		found++
		text, _, err := unstructured.NestedString(o.Object, "data", o.GetName()+".json")
		var board struct {
			UID    string `json:"uid"`
			Panels []any  `json:"panels"`
		}
		if err != nil || json.Unmarshal([]byte(text), &board) != nil || board.UID != o.GetName() || len(board.Panels) == 0 {
			t.Errorf("%s: %v, uid %q, %d panels", o.GetName(), err, board.UID, len(board.Panels))
		}
	}
	if found != 4 {
		t.Errorf("%d dashboards, want 4", found)
	}
}
