// Package prometheus generates Lifeboat's Grafana dashboards from a table, and holds the tests of its
// alerts, which Prometheus' own packages evaluate. It is a module of its own, so that no program of
// Lifeboat requires Prometheus.
package prometheus

import (
	"encoding/json"
	"fmt"
)

// dashboard is one dashboard of the chart.
type dashboard struct {
	name, title string
	panels      []panel
}

// panel is one panel: a number now (stat) or a graph over time (timeseries).
type panel struct {
	kind, title, unit string
	queries           []query
}

// query is a PromQL expression and the legend of its series, in Grafana's form.
type query struct{ expr, legend string }

// quantiles are the median and the 99th percentile of a histogram, by the given labels.
func quantiles(histogram, by, legend string) []query {
	return quantilesOver("$__rate_interval", histogram, by, legend)
}

// quantilesOver are the quantiles over a span of time, for what happens rarely.
func quantilesOver(span, histogram, by, legend string) []query {
	var all []query
	for _, q := range []string{"0.5", "0.99"} {
		all = append(all, query{
			fmt.Sprintf("histogram_quantile(%s, sum by (le%s) (rate(%s_bucket[%s])))", q, by, histogram, span), q + legend,
		})
	}
	return all
}

// one is a single query without a legend.
func one(expr string) []query { return []query{{expr, ""}} }

func dashboards() []dashboard {
	return []dashboard{fleet(), interruptions(), sources(), autoScaling()}
}

func fleet() dashboard {
	return dashboard{"lifeboat-fleet", "Lifeboat / Fleet", []panel{
		{"stat", "Interruptions under way", "short", one("max(lifeboat_interruptions_under_way)")},
		{"stat", "Nearest hard deadline", "s", one(`min(lifeboat_nearest_deadline_seconds{type="Hard"})`)},
		{"stat", "Await an approval", "short", one("max(lifeboat_awaiting_approval)")},
		{"stat", "Pods lost in 24 h", "short", one(`sum(increase(lifeboat_drained_pods_total{outcome="lost"}[24h]))`)},
		{"timeseries", "Interruptions by phase", "short", []query{{"sum by (phase) (lifeboat_interruptions)", "{{phase}}"}}},
		{"timeseries", "Interruptions by pool", "short", []query{{"sum by (pool) (lifeboat_interruptions)", "{{pool}}"}}},
		{"timeseries", "Pods that must leave", "short", []query{{"sum by (state) (lifeboat_pending_pods)", "{{state}}"}}},
		{"timeseries", "Pods moved and lost", "short", []query{{"sum by (outcome) (increase(lifeboat_drained_pods_total[5m]))", "{{outcome}}"}}},
		{"timeseries", "Replicas by version", "short", []query{{"count by (component, version) (lifeboat_build_info)", "{{component}} {{version}}"}}},
		{"timeseries", "Interruptions that ended", "short", []query{{"sum by (phase) (increase(lifeboat_finished_interruptions_total[5m]))", "{{phase}}"}}},
	}}
}

func interruptions() dashboard {
	return dashboard{"lifeboat-interruptions", "Lifeboat / Interruptions", []panel{
		{"timeseries", "From the notice to the record", "s", quantiles("lifeboat_notice_delay_seconds", "", "")},
		{"timeseries", "From the notice to the cordon", "s", quantiles("lifeboat_cordon_seconds", "", "")},
		{"timeseries", "From the notice to the last pod", "s", quantiles("lifeboat_drain_seconds", "", "")},
		{"timeseries", "From order to Ready replacement", "s", quantiles("lifeboat_replacement_ready_seconds", "", "")},
		{"timeseries", "Time to the nearest deadline", "s", []query{{"min by (type) (lifeboat_nearest_deadline_seconds)", "{{type}}"}}},
		{"timeseries", "Refused evictions", "short", []query{{"sum by (by) (increase(lifeboat_refused_evictions_total[5m]))", "{{by}}"}}},
		{"timeseries", "Replacements", "short", []query{{"sum by (outcome) (increase(lifeboat_replacements_total[5m]))", "{{outcome}}"}}},
		{"timeseries", "Longest waits", "s", []query{
			{"max(lifeboat_oldest_replacement_wait_seconds)", "replacement"}, {"max(lifeboat_oldest_hook_wait_seconds)", "hook"},
			{"max(lifeboat_oldest_approval_wait_seconds)", "approval"},
		}},
		{"timeseries", "Hooks", "short", []query{{"sum by (outcome) (increase(lifeboat_hooks_total[5m]))", "{{outcome}}"}, {`sum(lifeboat_hooks_waiting{state="running"})`, "running"}}},
		{"timeseries", "Holds and doubts", "short", []query{{"max(lifeboat_on_hold)", "on hold"}, {"max(lifeboat_uncorroborated)", "facts do not agree"}}},
	}}
}

func sources() dashboard {
	return dashboard{"lifeboat-sources", "Lifeboat / Sources and wiring", []panel{
		{"timeseries", "Sources that can be reached", "short", []query{{`max by (source) (lifeboat_source_up{source!="imds"})`, "{{source}}"}}},
		{"timeseries", "Agents that read metadata", "short", []query{{`sum(lifeboat_source_up{source="imds"})`, "up"}, {`count(lifeboat_source_up{source="imds"})`, "all"}}},
		{"timeseries", "Notices by kind", "short", []query{{"sum by (kind) (increase(lifeboat_recorded_notices_total[5m]))", "{{kind}}"}}},
		{"timeseries", "Messages by outcome", "short", []query{{"sum by (source, outcome) (increase(lifeboat_received_messages_total[5m]))", "{{source}} {{outcome}}"}}},
		{"timeseries", "Unreadable messages", "short", []query{{"sum by (source, reason) (increase(lifeboat_unreadable_messages_total[5m]))", "{{source}} {{reason}}"}}},
		{"timeseries", "Not delivered by the queue", "short", []query{{"sum by (kind) (increase(lifeboat_wiring_degraded_total[1h]))", "{{kind}}"}}},
		{"timeseries", "Probes that failed", "short", []query{{"sum by (rule) (increase(lifeboat_canary_failed_total[1h]))", "{{rule}}"}}},
		{"timeseries", "Time of probes", "s", quantilesOver("1h", "lifeboat_canary_seconds", ", rule", " {{rule}}")},
		{"timeseries", "Requests to AWS by result", "reqps", []query{{"sum by (service, result) (rate(lifeboat_aws_requests_total[$__rate_interval]))", "{{service}} {{result}}"}}},
		{"timeseries", "Time of requests to AWS", "s", quantiles("lifeboat_aws_request_seconds", ", service, operation", " {{service}} {{operation}}")},
	}}
}

func autoScaling() dashboard {
	return dashboard{"lifeboat-autoscaling", "Lifeboat / Auto Scaling", []panel{
		{"timeseries", "Instances by phase", "short", []query{{"sum by (nodegroup, phase) (lifeboat_nodegroup_instances)", "{{nodegroup}} {{phase}}"}}},
		{"timeseries", "Instances that a hook holds", "short", []query{{"sum by (nodegroup) (lifeboat_nodegroup_pending_actions)", "{{nodegroup}}"}}},
		{"timeseries", "Longest wait at a hook", "s", []query{{"max by (nodegroup) (lifeboat_nodegroup_oldest_pending_action_seconds)", "{{nodegroup}}"}}},
		{"timeseries", "Launches", "short", []query{{"sum by (result) (increase(lifeboat_launches_total[5m]))", "{{result}}"}, {"sum(increase(lifeboat_launches_given_up_total[5m]))", "given up"}}},
		{"timeseries", "Answers to hooks", "short", []query{{"sum by (operation, result) (increase(lifeboat_launch_calls_total[5m]))", "{{operation}} {{result}}"}}},
		{"timeseries", "Interrupted instances at a hook", "short", one("max(lifeboat_lifecycle_hooks_waiting)")},
		{"timeseries", "Age of the view of the groups", "s", one("max(lifeboat_group_age_seconds)")},
		{"timeseries", "Calls to read groups", "short", []query{{"sum by (operation, result) (increase(lifeboat_group_calls_total[5m]))", "{{operation}} {{result}}"}}},
	}}
}

// object is a JSON object.
type object map[string]any

// perRow is the number of graphs beside each other; numbers take half as much.
const perRow = 2

// json returns the dashboard in Grafana's format.
func (d dashboard) json() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	x, y, width := 0, 0, 24/perRow
	for i, p := range d.panels {
		w, h := width, 8
		if p.kind == "stat" {
			w, h = width/2, 4
		}
		var targets []object
		for n, q := range p.queries {
			targets = append(targets, object{"datasource": source, "expr": q.expr, "legendFormat": q.legend, "refId": string(rune('A' + n))})
		}
		panels = append(panels, object{
			"id": i + 1, "type": p.kind, "title": p.title, "datasource": source, "targets": targets,
			"gridPos":     object{"x": x, "y": y, "w": w, "h": h},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []any{}},
		})
		if x += w; x >= 24 {
			x, y = 0, y+h
		}
	}
	text, err := json.MarshalIndent(object{
		"uid": d.name, "title": d.title, "tags": []string{"lifeboat"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"time":       object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}},
		"panels":     panels,
	}, "", "  ")
	return append(text, '\n'), err
}
