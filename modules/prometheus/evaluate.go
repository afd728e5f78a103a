package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

var promqlParser = parser.NewParser(parser.Options{})

// NewEngine is Prometheus' engine with its defaults.
func NewEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: promqlParser,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
}

// ReadAlerts reads the alerts of a rule file as Prometheus does.
func ReadAlerts(path string) ([]rulefmt.Rule, error) {
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, promqlParser, promslog.NewNopLogger())
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// Firing evaluates alerts at each of the times, as Prometheus does, and returns when each of those
// that fire did so first.
func Firing(ctx context.Context, alerts []rulefmt.Rule, engine *promql.Engine, data storage.Queryable, times []time.Time) (map[string]time.Time, error) {
	query := rules.EngineQueryFunc(engine, data)
	fires := map[string]time.Time{}
	for _, a := range alerts {
		expr, err := promqlParser.ParseExpr(a.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Alert, err)
		}
		rule := rules.NewAlertingRule(a.Alert, expr, time.Duration(a.For), 0, labels.FromMap(a.Labels), labels.FromMap(a.Annotations),
			labels.EmptyLabels(), "", true, promslog.NewNopLogger())
		for _, at := range times {
			if _, err := rule.Eval(ctx, 0, at, query, &url.URL{}, 0); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Alert, err)
			}
			if slices.ContainsFunc(rule.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring }) {
				fires[a.Alert] = at
				break
			}
		}
	}
	return fires, nil
}

// EmptyPanels returns the panels of the dashboards whose queries have no value at any of the times.
// A panel has its name and that of its dashboard.
func EmptyPanels(ctx context.Context, engine *promql.Engine, data storage.Queryable, times []time.Time) ([]string, error) {
	var empty []string
	for _, d := range dashboards() {
		for _, p := range d.panels {
			shown := false
			for _, q := range p.queries {
				has, err := hasData(ctx, engine, data, strings.ReplaceAll(q.expr, "$__rate_interval", "1m"), times)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", d.name, p.title, err)
				}
				shown = shown || has
			}
			if !shown {
				empty = append(empty, d.name+": "+p.title)
			}
		}
	}
	return empty, nil
}

// hasData reports whether a query has a number at one of the times. Grafana shows NaN as no data.
func hasData(ctx context.Context, engine *promql.Engine, data storage.Queryable, expr string, times []time.Time) (bool, error) {
	for _, at := range times {
		q, err := engine.NewInstantQuery(ctx, data, nil, expr, at)
		if err != nil {
			return false, err
		}
		result := q.Exec(ctx)
		vector, err := result.Vector()
		if err != nil {
			return false, err
		}
		found := slices.ContainsFunc(vector, func(s promql.Sample) bool { return !math.IsNaN(s.F) })
		q.Close()
		if found {
			return true, nil
		}
	}
	return false, nil
}
