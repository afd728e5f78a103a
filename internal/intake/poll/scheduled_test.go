package poll_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func event(change ...func(*poll.Scheduled)) poll.Scheduled {
	s := poll.Scheduled{
		EventID: "instance-event-0a1b2c3d4e5f60718", Code: "instance-stop", Description: "The instance is running on degraded hardware",
		NotBefore: noon, NotAfter: noon.Add(2 * time.Hour),
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestScheduled(t *testing.T) {
	tests := []struct {
		name   string
		change func(*poll.Scheduled)
		want   func(*notice.Notice)
	}{
		{"a stop", func(*poll.Scheduled) {}, func(*notice.Notice) {}},
		{"a retirement", func(s *poll.Scheduled) { s.Code = "instance-retirement" },
			func(n *notice.Notice) { n.EventTypeCode = "instance-retirement" }},
		{"a reboot", func(s *poll.Scheduled) { s.Code = "system-reboot" },
			func(n *notice.Notice) { n.EventTypeCode, n.InstanceAction = "system-reboot", notice.ActionReboot }},
		{"a maintenance", func(s *poll.Scheduled) { s.Code = "system-maintenance" },
			func(n *notice.Notice) {
				n.EventTypeCode, n.InstanceAction = "system-maintenance", notice.ActionMaintain
			}},
		{"a code of a later day", func(s *poll.Scheduled) { s.Code = "instance-teleport" },
			func(n *notice.Notice) { n.EventTypeCode, n.InstanceAction = "instance-teleport", "" }},
		{"without an end", func(s *poll.Scheduled) { s.NotAfter = time.Time{} }, func(n *notice.Notice) { n.EndTime = nil }},
		{"completed", func(s *poll.Scheduled) { s.Description = "[Completed] " + s.Description }, func(n *notice.Notice) { n.Withdrawn = true }},
		{"cancelled", func(s *poll.Scheduled) { s.Description = "[Canceled] " + s.Description }, func(n *notice.Notice) { n.Withdrawn = true }},
		{"over by its state", func(s *poll.Scheduled) { s.Over = true }, func(n *notice.Notice) { n.Withdrawn = true }},
		{"over, with no time", func(s *poll.Scheduled) { s.Over, s.NotBefore = true, time.Time{} },
			func(n *notice.Notice) { n.Withdrawn, n.Deadline = true, nil }},
		{"without an id", func(s *poll.Scheduled) { s.EventID = "" }, func(n *notice.Notice) { n.Subject = "instance-stop" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := event(test.change).Notice(source, instance)
			if err != nil {
				t.Fatal(err)
			}
			want, err := event().Notice(source, instance)
			if err != nil {
				t.Fatal(err)
			}
			test.want(&want)
			if !strings.Contains(got.Description, got.EventTypeCode) || got.Withdrawn != strings.Contains(got.Description, "is over") {
				t.Errorf("description: %s", got.Description)
			}
			want.ID, want.Description = got.ID, got.Description
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	n, err := event().Notice(source, instance)
	if err != nil || n.Deadline.Type != v1beta1.DeadlineSoft || !n.Deadline.Time.Time.Equal(noon) || n.InstanceAction != notice.ActionStop ||
		!n.Time.IsZero() || n.Description != "EC2 has scheduled the event instance-stop for 2026-05-11T12:00:00Z to 2026-05-11T14:00:00Z: The instance is running on degraded hardware" {
		t.Errorf("got %+v, %v", n, err)
	}
}

func TestUnreadableScheduledEvent(t *testing.T) {
	for says, change := range map[string]func(*poll.Scheduled){
		"has no valid start":    func(s *poll.Scheduled) { s.NotBefore = time.Time{} },
		"no valid start time":   func(s *poll.Scheduled) { s.NotBefore = time.Unix(0, 0) },
		"neither an id nor a c": func(s *poll.Scheduled) { s.EventID, s.Code = "", "" },
	} {
		if n, err := event(change).Notice(source, instance); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %+v, %v; want an error that says %q", n, err, says)
		}
	}
}

func TestSameEventHasSameID(t *testing.T) {
	id := func(change ...func(*poll.Scheduled)) string {
		n, err := event(change...).Notice(source, instance)
		if err != nil {
			t.Fatal(err)
		}
		return n.ID
	}
	same := id()
	if again := id(func(s *poll.Scheduled) { s.Description = "another text" }); again != same {
		t.Errorf("another description makes it another: %s, %s", same, again)
	}
	for name, change := range map[string]func(*poll.Scheduled){
		"moved":     func(s *poll.Scheduled) { s.NotBefore = s.NotBefore.Add(time.Hour) },
		"longer":    func(s *poll.Scheduled) { s.NotAfter = s.NotAfter.Add(time.Hour) },
		"over":      func(s *poll.Scheduled) { s.Over = true },
		"of a code": func(s *poll.Scheduled) { s.Code = "instance-retirement" },
	} {
		if id(change) == same {
			t.Errorf("one that is %s has the same id", name)
		}
	}
}

func FuzzScheduled(f *testing.F) {
	f.Add("instance-event-1", "instance-stop", "[Completed] x", int64(1778500800), int64(0), true)
	f.Add("", "", "", int64(0), int64(-1), false)
	f.Add(strings.Repeat("é", 600), "\xff\x00", "\xff", int64(1<<40), int64(1<<60), false)
	f.Fuzz(func(t *testing.T, id, code, description string, notBefore, notAfter int64, over bool) {
		s := poll.Scheduled{
			EventID: id, Code: code, Description: description, Over: over,
			NotBefore: time.Unix(notBefore, 0), NotAfter: time.Unix(notAfter, 0),
		}
		n, err := s.Notice(source, instance)
		if err != nil {
			return
		}
		mustFit(t, &n)
		if !n.Withdrawn && (n.Deadline == nil || n.Deadline.Type != v1beta1.DeadlineSoft) {
			t.Errorf("a node would be emptied at once for %+v", s)
		}
	})
}

// mustFit fails if the CRD would reject the notice.
func mustFit(t *testing.T, n *notice.Notice) {
	t.Helper()
	if n.ID == "" || len(n.ID) > 128 || utf8.RuneCountInString(n.Subject) > 512 || utf8.RuneCountInString(n.EventTypeCode) > 128 || n.Kind == "" {
		t.Errorf("the CRD would refuse %+v", n)
	}
	if d := n.Deadline; d != nil && !poll.Plausible(d.Time.Time) {
		t.Errorf("no deadline can be %s", d.Time)
	}
}

func TestID(t *testing.T) {
	if got := poll.ID("imds", "SpotInterruption", "stop"); got != "imds/SpotInterruption/stop" {
		t.Error(got)
	}
	long := poll.ID("ec2", strings.Repeat("x", 200))
	if len(long) > 128 || !strings.HasPrefix(long, "ec2/sha256-") || long == poll.ID("ec2", strings.Repeat("x", 201)) {
		t.Error(long)
	}
	if got := poll.ID("ec2", "é\n"); !strings.HasPrefix(got, "ec2/sha256-") {
		t.Error(got)
	}
}
