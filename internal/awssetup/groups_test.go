package awssetup_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
)

func forGroups(t *testing.T, names ...string) awssetup.Wiring {
	t.Helper()
	w, err := awssetup.Desired("prod", "210987654321", "eu-west-1").ForGroups(names)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRulesOfGroups(t *testing.T) {
	t.Parallel()
	w := forGroups(t, "nodes-b", "nodes-a", "nodes-b")
	if diff := cmp.Diff([]string{"nodes-a", "nodes-b"}, w.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	match := roleMatcher(t, w.Rules)
	for _, s := range pattern.Samples() {
		var event map[string]any
		if err := json.Unmarshal(s.JSON, &event); err != nil {
			t.Fatal(err)
		}
		detail, _ := event["detail"].(map[string]any)
		for group, mine := range map[string]bool{"nodes-a": true, "nodes-b": true, "nodes-c": false} {
			ofGroup := detail["AutoScalingGroupName"] != nil
			if ofGroup {
				detail["AutoScalingGroupName"] = group
			}
			text, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			want := []string(nil)
			if by := roleOfSample()[s.Name]; by != "" && (mine || !ofGroup) {
				want = []string{by}
			}
			if diff := cmp.Diff(want, match(text)); diff != "" {
				t.Errorf("%s of group %s is matched by (-want +got):\n%s", s.Name, group, diff)
			}
		}
	}
	for _, r := range w.Rules {
		probe, err := awssetup.Probe(r, "1", "prod")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"source": probe.Source, "detail-type": probe.DetailType, "detail": probe.Detail})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(match(text), r.Role) {
			t.Errorf("a probe does not pass the rule %s: %s", r.Name, text)
		}
	}
	if other := awssetup.Desired("prod", "210987654321", "eu-west-1"); !cmp.Equal(forGroups(t).Rules, other.Rules) {
		t.Error("without groups the rules must match all groups")
	}
}

func TestTooManyGroupsForARule(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range "abcdefghijklmnopqrst" {
		names = append(names, strings.Repeat(string(c), 100))
	}
	_, err := awssetup.Desired("prod", "210987654321", "eu-west-1").ForGroups(names)
	var many *awssetup.TooManyGroupsError
	if !errors.As(err, &many) || many.Groups != len(names) || many.Length <= 2048 {
		t.Errorf("error %v", err)
	}
}

// The limit of existing rules can be read back.
func TestLimitedTo(t *testing.T) {
	t.Parallel()
	rule := func(pattern string) awssetup.Observed {
		return awssetup.Observed{Rules: []awssetup.ObservedRule{{Name: "x", Pattern: pattern}}}
	}
	ours := forGroups(t, "a", "b")
	lifecycle := slices.IndexFunc(ours.Rules, func(r awssetup.Rule) bool { return r.Role == awssetup.RoleAutoScalingLifecycle })
	for name, tc := range map[string]struct {
		pattern string
		want    []string
	}{
		"ours":              {ours.Rules[lifecycle].Pattern, []string{"a", "b"}},
		"ours, merged":      {mergedAutoScaling(t, "a", "b"), []string{"a", "b"}},
		"all, merged":       {mergedAutoScaling(t), nil},
		"of all groups":     {forGroups(t).Rules[lifecycle].Pattern, nil},
		"with more to it":   {strings.Replace(ours.Rules[lifecycle].Pattern, `"detail":{`, `"detail":{"Origin":["EC2"],`, 1), nil},
		"without the probe": {strings.Replace(ours.Rules[lifecycle].Pattern, `,"lifeboat.dev/probe"`, "", 1), nil},
		"of another":        {`{"source":["aws.autoscaling"],"detail":{"AutoScalingGroupName":["a"]}}`, nil},
		"no text":           {`{"detail":{"AutoScalingGroupName":[{"prefix":"a"}]}}`, nil},
		"no pattern":        {"", nil},
	} {
		got, limits := awssetup.LimitedTo(rule(tc.pattern))
		if diff := cmp.Diff(tc.want, got); diff != "" || limits != (tc.want != nil) {
			t.Errorf("%s: limits %t (-want +got):\n%s", name, limits, diff)
		}
	}
}
