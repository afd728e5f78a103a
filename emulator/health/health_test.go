package health_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// region is EC2 and Health without other services, in virtual time.
type region struct {
	*health.State
	ec2   *ec2.State
	start time.Time

	mu   sync.Mutex
	sent []events.Event
}

func inRegion(t *testing.T, test func(t *testing.T, r *region)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scope := wire.Scope{Account: "210987654321", Region: "eu-west-1"}
		r := &region{ec2: ec2.New(ec2.Options{Scope: scope})}
		r.State = health.New(health.Options{Scope: scope, EC2: r.ec2, Emit: func(e events.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sent = append(r.sent, e)
		}})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.ec2.Run(ctx) })
		running.Go(func() { r.Run(ctx) })
		r.start = time.Now()
		test(t, r)
		stop()
		running.Wait()
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *region) launch(t *testing.T, n int) []string {
	t.Helper()
	made, err := r.ec2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: n, Max: n})
	check(t, err)
	pass(time.Second)
	var ids []string
	for _, in := range made {
		ids = append(ids, in.ID)
	}
	return ids
}

// detail is the part of an event that the tests check.
type detail struct {
	EventARN, CommunicationID, EventTypeCode, EventTypeCategory, EventScopeCode string
	StartTime, EndTime, LastUpdatedTime, StatusCode, EventRegion                string
	Page, TotalPages, BackupEvent, Service                                      string
	AffectedEntities                                                            []struct{ EntityValue, Status string }
}

func read(t *testing.T, e events.Event) detail {
	t.Helper()
	var s detail
	check(t, json.Unmarshal(e.Detail, &s))
	return s
}

// history is a short form of all events so far: when, status, start, and the status of the entities,
// sorted.
func (r *region) history(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.sent {
		s := read(t, e)
		start, err := time.Parse("Mon, 2 Jan 2006 15:04:05 MST", s.StartTime)
		check(t, err)
		words := []string{}
		for _, x := range s.AffectedEntities {
			words = append(words, x.Status)
		}
		slices.Sort(words) // the order of simultaneous events is not defined
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s %s from %s: %s", e.Time.Sub(r.start).Round(time.Minute), s.StatusCode,
			start.Sub(r.start).Round(time.Minute), strings.Join(words, " ")), " "))
	}
	return out
}

func TestMaintenanceOfInstances(t *testing.T) {
	for _, tc := range []struct {
		name, code, health string
		do                 func(t *testing.T, r *region, arn string, ids []string) // after half an hour
		history            []string
		states             []ec2.InstanceState
	}{
		{
			"two reboots", "system-reboot", "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", nil,
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "1h0m0s open from 1h0m0s: PENDING PENDING",
				"1h0m0s open from 1h0m0s: PENDING RESOLVED", "1h0m0s closed from 1h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Running, ec2.Running},
		},
		{
			"two stops", "instance-stop", "AWS_EC2_INSTANCE_STOP_SCHEDULED", nil,
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "1h0m0s open from 1h0m0s: PENDING PENDING",
				"1h0m0s open from 1h0m0s: PENDING RESOLVED", "1h0m0s closed from 1h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Stopped, ec2.Stopped},
		},
		{
			"stops that are called off", "instance-stop", "AWS_EC2_INSTANCE_STOP_SCHEDULED",
			func(t *testing.T, r *region, arn string, _ []string) { check(t, r.Close(arn)) },
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "30m0s closed from 1h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Running, ec2.Running},
		},
		{
			"stops that are put off", "instance-retirement", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
			func(t *testing.T, r *region, arn string, _ []string) {
				check(t, r.Reschedule(arn, r.start.Add(2*time.Hour), r.start.Add(3*time.Hour)))
			},
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "30m0s upcoming from 2h0m0s: PENDING PENDING",
				"2h0m0s open from 2h0m0s: PENDING PENDING", "2h0m0s open from 2h0m0s: PENDING RESOLVED", "2h0m0s closed from 2h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Stopped, ec2.Stopped},
		},
		{
			"one that its user moves out of the way", "instance-retirement", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
			func(t *testing.T, r *region, _ string, ids []string) {
				_, err := r.ec2.Terminate(ids[:1])
				check(t, err)
			},
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "30m0s upcoming from 1h0m0s: PENDING RESOLVED",
				"1h0m0s open from 1h0m0s: PENDING RESOLVED", "1h0m0s closed from 1h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Terminated, ec2.Stopped},
		},
		{
			"network maintenance", "system-maintenance", "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED", nil,
			[]string{"0s upcoming from 1h0m0s: PENDING PENDING", "1h0m0s open from 1h0m0s: PENDING PENDING",
				"2h0m0s open from 1h0m0s: PENDING RESOLVED", "2h0m0s closed from 1h0m0s: RESOLVED RESOLVED"},
			[]ec2.InstanceState{ec2.Running, ec2.Running},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inRegion(t, func(t *testing.T, r *region) {
				ids := r.launch(t, 2)
				arn, err := r.Schedule(health.Plan{
					InstanceIDs: ids, Code: tc.code, NotBefore: r.start.Add(time.Hour), NotAfter: r.start.Add(2 * time.Hour),
				})
				check(t, err)
				pass(30 * time.Minute)
				if tc.do != nil {
					tc.do(t, r, arn, ids)
				}
				pass(50 * time.Minute)
				var states []ec2.InstanceState
				if tc.name != "stops that are put off" {
					for _, id := range ids {
						in, _ := r.ec2.Instance(id)
						states = append(states, in.State)
					}
					same(t, "states", states, tc.states)
				}
				pass(2 * time.Hour)
				same(t, "history", r.history(t), tc.history)
				same(t, "code", read(t, r.sent[0]).EventTypeCode, tc.health)
			})
		})
	}
}

// Health sends events for what EC2 does with the maintenance of one instance.
func TestHealthFollowsEC2(t *testing.T) {
	inRegion(t, func(t *testing.T, r *region) {
		id := r.launch(t, 1)[0]
		arn, err := r.Schedule(health.Plan{InstanceIDs: []string{id}, Code: "instance-stop", NotBefore: r.start.Add(time.Hour)})
		check(t, err)
		event := r.Planned(arn)[id]
		in, _ := r.ec2.Instance(id)
		m := in.Maintenance[0]
		same(t, "the event at EC2", m.ID, event)
		m.NotBefore = r.start.Add(3 * time.Hour)
		_, err = r.ec2.ScheduleMaintenance(id, m)
		check(t, err)
		pass(2 * time.Hour)
		check(t, r.ec2.EndMaintenance(id, event, false))
		pass(5 * time.Hour)
		same(t, "history", r.history(t), []string{
			"0s upcoming from 1h0m0s: PENDING", "0s upcoming from 3h0m0s: PENDING", "2h0m0s closed from 3h0m0s: RESOLVED",
		})
		in, _ = r.ec2.Instance(id)
		same(t, "state", in.State, ec2.Running)
	})
}

func TestEventsOfOtherServices(t *testing.T) {
	inRegion(t, func(t *testing.T, r *region) {
		arn := r.Open(health.Event{
			Service: "EBS", Code: "AWS_EBS_VOLUME_LOST", Category: health.Issue, Start: r.start,
			Entities: []health.Entity{{ID: "vol-1"}, {ID: "h-2"}, {ID: "something"}},
		})
		check(t, r.Resolve(arn, "vol-1"))
		check(t, r.Repeat(arn))
		check(t, r.Resolve(arn, "h-2"))
		check(t, r.Resolve(arn, "something"))
		same(t, "history", r.history(t), []string{
			"0s open from 0s: IMPAIRED IMPAIRED IMPAIRED", "0s open from 0s: IMPAIRED IMPAIRED RESOLVED", "0s open from 0s: IMPAIRED IMPAIRED RESOLVED",
			"0s open from 0s: IMPAIRED RESOLVED RESOLVED", "0s closed from 0s: RESOLVED RESOLVED RESOLVED",
		})
		same(t, "resources", r.sent[0].Resources,
			[]string{"arn:aws:ec2:eu-west-1:210987654321:volume/vol-1", "arn:aws:ec2:eu-west-1:210987654321:dedicated-host/h-2", "something"})
		same(t, "the repeated one", r.sent[2].Detail, r.sent[1].Detail)
		if read(t, r.sent[1]).CommunicationID == read(t, r.sent[3]).CommunicationID {
			t.Error("an update is no communication of its own")
		}
		for what, err := range map[string]error{
			"an unknown event": r.Close("arn:none"), "an unknown entity": r.Resolve(arn, "vol-9"),
		} {
			if err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		if _, err := r.Schedule(health.Plan{InstanceIDs: []string{"i-0123456789abcdef0"}, Code: "instance-stop"}); err == nil {
			t.Error("an unknown instance was taken")
		}
	})
}

func TestAccountEventsOpenAndClose(t *testing.T) {
	inRegion(t, func(t *testing.T, r *region) {
		arn := r.Open(health.Event{
			Service: "EKS", Code: "AWS_EKS_PLANNED_LIFECYCLE_EVENT", Public: true, Region: "eu-central-1", Form: health.Form{Backup: true, NoResources: true},
			Start: r.start.Add(time.Hour), End: r.start.Add(2 * time.Hour),
		})
		pass(5 * time.Hour)
		same(t, "history", r.history(t), []string{"0s upcoming from 1h0m0s:", "1h0m0s open from 1h0m0s:", "2h0m0s closed from 1h0m0s:"})
		s := read(t, r.sent[0])
		same(t, "what it says", []any{s.EventARN, s.EventScopeCode, s.EventRegion, s.BackupEvent, s.EventTypeCategory, len(s.AffectedEntities), r.Events()[0].Status},
			[]any{arn, "PUBLIC", "eu-central-1", "true", "scheduledChange", 0, health.Closed})
		body, err := r.sent[0].MarshalJSON()
		check(t, err)
		if !strings.Contains(string(body), `"affectedEntities":[]`) || strings.Contains(string(body), "resources") {
			t.Errorf("envelope %s", body)
		}
	})
}

func TestPages(t *testing.T) {
	inRegion(t, func(t *testing.T, r *region) {
		e := health.Event{Code: "AWS_EC2_INSTANCE_STOP_SCHEDULED", Start: r.start.Add(time.Hour), Form: health.Form{PageSize: 2, BareIDs: true}}
		for n := range 5 {
			e.Entities = append(e.Entities, health.Entity{ID: fmt.Sprintf("i-%d", n)})
		}
		r.Open(e)
		var got []string
		for _, sent := range r.sent {
			s := read(t, sent)
			line := s.Page + "/" + s.TotalPages
			if !strings.HasSuffix(s.CommunicationID, "-"+s.Page) {
				t.Errorf("page %s has communication id %s", s.Page, s.CommunicationID)
			}
			for _, x := range s.AffectedEntities {
				line += " " + x.EntityValue
			}
			got = append(got, line)
		}
		same(t, "pages", got, []string{"1/3 i-0 i-1", "2/3 i-2 i-3", "3/3 i-4"})
	})
}

// Days below ten have one digit, as AWS writes them.
func TestDates(t *testing.T) {
	inRegion(t, func(t *testing.T, r *region) {
		r.Open(health.Event{Code: "X", Start: time.Date(2066, 5, 3, 9, 0, 0, 0, time.UTC)})
		same(t, "start", read(t, r.sent[0]).StartTime, "Mon, 3 May 2066 09:00:00 GMT")
	})
}
