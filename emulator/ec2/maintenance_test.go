package ec2

import (
	"testing"
	"time"
)

// schedule puts maintenance on an instance, an hour from now.
func (w *world) schedule(t *testing.T, id, code string) (event string) {
	t.Helper()
	event, err := w.ScheduleMaintenance(id, Maintenance{
		Code: code, Description: "as planned", NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(3 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(0)
	w.forget()
	return event
}

// planned is a short form of an instance's one scheduled event; empty: none.
func (w *world) planned(id string) string {
	in, _ := w.Instance(id)
	if len(in.Maintenance) == 0 {
		return ""
	}
	return string(in.Maintenance[0].State) + ": " + in.Maintenance[0].Description
}

func TestScheduledEventsHappen(t *testing.T) {
	for _, tc := range []struct {
		code   string
		spot   *SpotOptions
		before string   // after an hour and ten seconds
		log    []string // within three hours
		reason string
	}{
		{"system-reboot", nil, "completed: [Completed] as planned", []string{"1h0m0s Rebooted running", "1h0m0s StatusChanged running"}, ""},
		{"instance-reboot", nil, "completed: [Completed] as planned", []string{"1h0m0s Rebooted running", "1h0m0s StatusChanged running"}, ""},
		{"system-maintenance", nil, "active: as planned", []string{"3h0m0s StatusChanged running"}, ""},
		{"instance-stop", nil, "completed: [Completed] as planned", []string{
			"1h0m0s ShuttingDown stopping", "1h0m0s PowerOff stopping", "1h0m2s Stopped stopped", "1h0m2s StatusChanged stopped",
		}, "Server.ScheduledStop"},
		{"instance-retirement", &SpotOptions{Persistent: true}, "completed: [Completed] as planned", []string{
			"1h0m0s ShuttingDown stopping", "1h0m0s PowerOff stopping", "1h0m2s Stopped stopped", "1h0m2s StatusChanged stopped",
		}, "Server.ScheduledStop"},
		{"instance-retirement", &SpotOptions{}, "completed: [Completed] as planned", []string{
			"1h0m0s ShuttingDown shutting-down", "1h0m0s PowerOff shutting-down", "1h0m2s Terminated terminated", "1h0m2s StatusChanged terminated",
			"2h0m2s Forgotten terminated",
		}, "Server.ScheduledStop"},
	} {
		t.Run(tc.code, func(t *testing.T) {
			inWorld(t, Timing{}, func(t *testing.T, w *world) {
				id := w.launch(t, tc.spot)
				w.start = time.Now()
				w.schedule(t, id, tc.code)
				w.pass(time.Hour - 1)
				same(t, "just before", []any{w.planned(id), len(w.log)}, []any{"active: as planned", 0})
				w.pass(10 * time.Second)
				in, _ := w.Instance(id)
				same(t, "after", []string{w.planned(id), in.StateReason.Code}, []string{tc.before, tc.reason})
				w.pass(2 * time.Hour)
				same(t, "changes", w.log, tc.log)
			})
		})
	}
}

func TestScheduledEventsMoveAndEnd(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		event := w.schedule(t, id, "instance-stop")
		if _, err := w.ScheduleMaintenance(id, Maintenance{ID: event, Code: "instance-stop", Description: "later", NotBefore: time.Now().Add(5 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Hour)
		in, _ := w.Instance(id)
		same(t, "moved", []string{w.planned(id), string(in.State)}, []string{"active: later", "running"})
		if err := w.EndMaintenance(id, event, false); err != nil {
			t.Fatal(err)
		}
		w.pass(4 * time.Hour)
		in, _ = w.Instance(id)
		same(t, "cancelled", []string{w.planned(id), string(in.State)}, []string{"canceled: [Canceled] later", "running"})
		w.pass(7*24*time.Hour - 4*time.Hour - time.Second)
		same(t, "just before a week is over", w.planned(id), "canceled: [Canceled] later")
		w.pass(2 * time.Second)
		same(t, "after a week", w.planned(id), "")
	})
}

// An instance that its user stops and starts runs on other hardware.
func TestStartCancelsScheduledEvent(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		w.schedule(t, id, "instance-retirement")
		if _, err := w.Stop([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		same(t, "stopped", w.planned(id), "active: as planned")
		if _, err := w.Start([]string{id}); err != nil {
			t.Fatal(err)
		}
		same(t, "started", w.planned(id), "completed: [Completed] as planned")
		w.pass(2 * time.Hour)
		in, _ := w.Instance(id)
		same(t, "at its time", in.State, Running)
	})
}
