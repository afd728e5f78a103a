package autoscaling_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// inLiving runs a test in a region with one group, named g, with a template: it launches the
// template named workers, by default in all three zones, up to ten instances.
func inLiving(t *testing.T, g autoscaling.Group, test func(t *testing.T, r *region)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scope := wire.Scope{Account: "210987654321", Region: "eu-west-1"}
		r := &region{ec2: ec2.New(ec2.Options{Scope: scope})}
		r.State = autoscaling.New(autoscaling.Options{
			Scope: scope, EC2: r.ec2, Emit: r.recordEvent,
			Deliver: func(string, string, sqs.Sender) error { return errors.New("no such queue") },
		})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.ec2.Run(ctx) })
		running.Go(func() { r.Run(ctx) })
		r.template(t, "workers", "m5.large")
		g.Name = "g"
		if g.Mixed == nil {
			g.Template = ec2.TemplateRef{Name: "workers", Version: "$Latest"}
		}
		if g.Max == 0 {
			g.Max = 10
		}
		check(t, r.CreateGroup(g))
		test(t, r)
		stop()
		running.Wait()
	})
}

func (r *region) template(t *testing.T, name, instanceType string) {
	t.Helper()
	must(r.ec2.CreateTemplate(name, "", "", ec2.TemplateData{
		ImageID: "ami-0abc", InstanceType: instanceType, UserData: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")),
	}, nil))(t)
}

// up and down are hooks with a timeout of one minute.
func up() autoscaling.Hook {
	return autoscaling.Hook{Name: "up", Transition: autoscaling.Launching, Heartbeat: time.Minute}
}

func down() autoscaling.Hook {
	return autoscaling.Hook{Name: "down", Transition: autoscaling.Leaving, Heartbeat: time.Minute}
}

// states counts the members by state: "2 InService, 1 Pending:Wait".
func (r *region) states() string {
	counts := map[autoscaling.LifecycleState]int{}
	for _, m := range r.Members() {
		counts[m.State]++
	}
	var out []string
	for state, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// in lists the members in a state, in the order of joining.
func (r *region) in(state autoscaling.LifecycleState) []string {
	var out []string
	for _, m := range r.Members() {
		if m.State == state {
			out = append(out, m.InstanceID)
		}
	}
	return out
}

// answer completes all actions of the instances in a state.
func (r *region) answer(t *testing.T, state autoscaling.LifecycleState, result autoscaling.Result) {
	t.Helper()
	ids := r.in(state)
	if len(ids) == 0 {
		t.Fatalf("nothing is %s: %s", state, r.states())
	}
	for _, id := range ids {
		for _, a := range r.Actions(id) {
			check(t, r.Complete(a.Ref, result))
		}
	}
}

// path is the sequence of states of an instance.
func (r *region) path(id string) string {
	var out []string
	for _, c := range r.Trace() {
		if c.InstanceID == id {
			out = append(out, string(c.To))
		}
	}
	return strings.Join(out, " ")
}

// settled waits until all work that needs no hook result is done.
func settled() { pass(20 * time.Second) }

func TestGroupKeepsDesiredSize(t *testing.T) {
	inLiving(t, autoscaling.Group{Min: 1, Desired: 3, Tags: map[string]string{"team": "a", "own": "x"}, NotPropagated: []string{"own"}}, func(t *testing.T, r *region) {
		settled()
		same(t, "at first", r.states(), "3 InService")
		zones := map[string]int{}
		for _, m := range r.Members() {
			zones[m.Zone]++
			same(t, "way", r.path(m.InstanceID), "Pending Pending:Proceed InService")
		}
		same(t, "zones", zones, map[string]int{"eu-west-1a": 1, "eu-west-1b": 1, "eu-west-1c": 1})
		in, _ := r.ec2.Instance(r.in(autoscaling.InService)[0])
		templates := r.ec2.Templates()
		same(t, "tags", in.Tags, map[string]string{
			"team": "a", "aws:autoscaling:groupName": "g", "aws:ec2launchtemplate:id": templates[0].ID, "aws:ec2launchtemplate:version": "1",
		})
		same(t, "user data", in.UserData, base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")))

		check(t, r.SetDesired("g", 5, false))
		settled()
		same(t, "scaled out", r.states(), "5 InService")
		oldest := r.in(autoscaling.InService)[:3]
		check(t, r.SetDesired("g", 2, false))
		settled()
		same(t, "scaled in", r.states(), "2 InService")
		for _, id := range r.in(autoscaling.InService) {
			if m, _ := r.Member(id); slices.Contains(oldest, id) && m.Zone != "eu-west-1c" {
				t.Errorf("%s in %s stayed, and is one of the oldest of the zones with the most", id, m.Zone)
			}
		}
	})
}

// The hooks of a new group apply to its first instances, and to those of its pool.
func TestHooksHoldInitialInstances(t *testing.T) {
	pool := autoscaling.WarmPool{MinSize: 2, MaxPrepared: new(int)}
	inLiving(t, autoscaling.Group{Desired: 1, Hooks: []autoscaling.Hook{up()}, WarmPool: &pool}, func(t *testing.T, r *region) {
		pass(5 * time.Second)
		same(t, "held", r.states(), "1 Pending:Wait, 2 Warmed:Pending:Wait")
		r.answer(t, autoscaling.Pending+":Wait", autoscaling.Continue)
		r.answer(t, autoscaling.WarmedPending+":Wait", autoscaling.Continue)
		settled()
		same(t, "answered", r.states(), "1 InService, 2 Warmed:Stopped")
		warm := r.in(autoscaling.WarmedStopped)

		check(t, r.SetDesired("g", 2, false))
		pass(5 * time.Second)
		same(t, "the pool is used, and filled again", r.states(), "1 InService, 1 Pending:Wait, 1 Warmed:Pending:Wait, 1 Warmed:Stopped")
		same(t, "the one", r.in(autoscaling.Pending+":Wait"), warm[:1])
		first := r.Actions(warm[0])[0]
		same(t, "second firing", []string{first.Origin, first.Destination, string(first.Transition)}, []string{"WarmPool", "AutoScalingGroup", "autoscaling:EC2_INSTANCE_LAUNCHING"})
		r.answer(t, autoscaling.Pending+":Wait", autoscaling.Continue)
		settled()
		same(t, "way", r.path(warm[0]), "Warmed:Pending Warmed:Pending:Wait Warmed:Pending:Proceed Warmed:Stopped Pending Pending:Wait Pending:Proceed InService")
	})
}

// contains reports whether a text, or an error's, has a part.
func contains(text any, part string) bool { return strings.Contains(fmt.Sprint(text), part) }
