package awssetup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
)

func merged(t *testing.T, groups ...string) (separate, merged awssetup.Wiring) {
	t.Helper()
	separate, err := awssetup.Desired("prod", "210987654321", "eu-west-1").ForGroups(groups)
	if err != nil {
		t.Fatal(err)
	}
	merged, err = separate.Merged()
	if err != nil {
		t.Fatal(err)
	}
	return separate, merged
}

func TestMergedRulesAreThree(t *testing.T) {
	t.Parallel()
	separate, merged := merged(t)
	var names []string
	for _, r := range merged.Rules {
		names = append(names, r.Name)
		if r.Optional() {
			t.Errorf("%s is optional, and delivers %v", r.Name, r.Kinds)
		}
	}
	if want := []string{"lifeboat-prod-ec2", "lifeboat-prod-autoscaling", "lifeboat-prod-health"}; !slices.Equal(names, want) {
		t.Errorf("rules %v, want %v", names, want)
	}
	for _, r := range separate.Rules {
		by, ok := merged.Delivers(r.Role)
		for _, kind := range r.Kinds {
			if !ok || !slices.Contains(by.Kinds, kind) {
				t.Errorf("%s: rule %q does not deliver %s", r.Role, by.Name, kind)
			}
		}
	}
}

// TestMergedRulesMatchSameEvents compares both forms on random events, with the engine of the
// product and that of the emulator, which share no code.
func TestMergedRulesMatchSameEvents(t *testing.T) {
	t.Parallel()
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	for _, groups := range [][]string{nil, {"nodes-a", "nodes-b"}} {
		separate, merged := merged(t, groups...)
		one, three := matchers(t, separate.Rules), matchers(t, merged.Rules)
		matches, types := 0, detailTypes(t, separate.Rules)
		for seed := range rounds {
			event := randomEvent(t, rand.New(rand.NewPCG(2, uint64(seed))), types, groups)
			for engine := range one {
				want, got := one[engine](event), three[engine](event)
				if got != want {
					t.Fatalf("groups %v, seed %d, %s: separate rules match %t, merged rules %t: %s", groups, seed, engine, want, got, event)
				}
				if got {
					matches++
				}
			}
		}
		if matches < rounds/10 {
			t.Errorf("only %d of %d events match: the cases test little", matches, rounds)
		}
	}
}

// matchers report, by engine, whether a rule matches an event.
func matchers(t *testing.T, rules []awssetup.Rule) map[string]func([]byte) bool {
	t.Helper()
	var ours []*pattern.Pattern
	var theirs []*emulated.Pattern
	for _, r := range rules {
		a, err := pattern.Compile([]byte(r.Pattern))
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		b, err := emulated.Compile(r.Pattern)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		ours, theirs = append(ours, a), append(theirs, b)
	}
	return map[string]func([]byte) bool{
		"product": func(event []byte) bool {
			return slices.ContainsFunc(ours, func(p *pattern.Pattern) bool {
				ok, err := p.Match(event)
				return ok && err == nil
			})
		},
		"emulator": func(event []byte) bool {
			decoded, err := emulated.Decode(event)
			return err == nil && slices.ContainsFunc(theirs, func(p *emulated.Pattern) bool { return p.Matches(decoded) })
		},
	}
}

// detailTypes are those that the rules name, and others.
func detailTypes(t *testing.T, rules []awssetup.Rule) []string {
	t.Helper()
	types := []string{"EC2 Instance Launch Successful", "other"}
	for _, r := range rules {
		var p struct {
			DetailType []string `json:"detail-type"`
		}
		if err := json.Unmarshal([]byte(r.Pattern), &p); err != nil {
			t.Fatal(err)
		}
		types = append(types, p.DetailType...)
	}
	return types
}

// randomEvent has values that the rules name, and others, in any combination.
func randomEvent(t *testing.T, rnd *rand.Rand, types, groups []string) []byte {
	t.Helper()
	one := func(values ...string) string { return values[rnd.IntN(len(values))] }
	detail := map[string]any{}
	for field, value := range map[string]string{
		"state":                one("pending", "stopping", "stopped", "shutting-down", "terminated"),
		"AutoScalingGroupName": one(append(slices.Clone(groups), "other", "lifeboat.dev/probe")...),
		"eventSource":          one("autoscaling.amazonaws.com", "ec2.amazonaws.com"),
		"eventName":            one("CompleteLifecycleAction", "other"),
		"errorCode":            one("AccessDenied", ""),
		"service":              one("EC2", "EBS", "RDS"),
		"eventTypeCategory":    one("scheduledChange", "issue", "investigation"),
		"backupEvent":          one("true", "false"),
	} {
		if rnd.IntN(4) > 0 {
			detail[field] = value
		}
	}
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": fmt.Sprint(rnd.Uint64()), "account": "210987654321", "region": "eu-west-1", "time": "2026-05-11T08:14:02Z", "resources": []string{},
		"source": one("aws.ec2", "aws.autoscaling", "aws.health", "lifeboat.dev", "other"), "detail-type": one(types...), "detail": detail,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mergedAutoScaling(t *testing.T, groups ...string) string {
	t.Helper()
	_, w := merged(t, groups...)
	rule, _ := w.Delivers(awssetup.RoleAutoScalingResult)
	return rule.Pattern
}

func TestMergedPatternHasLimitOfLength(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 80 {
		names = append(names, fmt.Sprintf("an-auto-scaling-group-%d", i))
	}
	for ; len(names) > 0; names = names[1:] { // the first list that fits separate rules
		w, err := awssetup.Desired("prod", "210987654321", "eu-west-1").ForGroups(names)
		if err != nil {
			continue
		}
		var many *awssetup.TooManyGroupsError
		if _, err := w.Merged(); !errors.As(err, &many) || many.Length <= 2048 {
			t.Errorf("%d groups: error %v", len(names), err)
		}
		return
	}
}

// TestNothingIsLostWhileRulesAreMerged sends an event of every role after each change, in both
// directions. Each must reach the queue.
func TestNothingIsLostWhileRulesAreMerged(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	applied := must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	separate := a.w
	for _, w := range []awssetup.Wiring{must(separate.Merged())(t), separate.Separated()} {
		name := fmt.Sprintf("to %d rules", len(w.Rules))
		a.w = w
		plan := a.plan(t, awssetup.Options{})
		steps := 0
		_, err := plan.Apply(t.Context(), a.clients, func(c awssetup.Change) {
			steps++
			for _, r := range separate.Rules {
				a.checkProbe(t, r, applied.QueueURL, fmt.Sprintf("%s, after the change of %s: %s", name, c.Name, r.Role))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps < 8 {
			t.Errorf("%s: only %d changes", name, steps)
		}
		if left := a.observe(t).Rules; len(left) != len(w.Rules) {
			t.Errorf("%s: %d rules are left, want %d", name, len(left), len(w.Rules))
		}
		if again := a.plan(t, awssetup.Options{}); !again.Empty() {
			t.Errorf("%s: a second plan is not empty: %v", name, lines(again))
		}
	}
}

// checkProbe sends a probe of a role, and waits for it in the queue. It may arrive through two rules.
func (a *account) checkProbe(t *testing.T, r awssetup.Rule, url, what string) {
	t.Helper()
	id := fmt.Sprint("probe-", rand.Uint64())
	probe := must(awssetup.Probe(r, id, a.w.Cluster))(t)
	must(a.rules.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
		Source: &probe.Source, DetailType: &probe.DetailType, Detail: aws.String(string(probe.Detail)),
	}}}))(t)
	for {
		got := must(a.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 2}))(t)
		if len(got.Messages) == 0 {
			t.Errorf("%s: the probe does not arrive", what)
			return
		}
		must(a.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: got.Messages[0].ReceiptHandle}))(t)
		if strings.Contains(*got.Messages[0].Body, id) {
			return
		}
	}
}
