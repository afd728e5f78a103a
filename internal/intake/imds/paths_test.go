package imds

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var update = flag.Bool("update", false, "write the golden files")

// read decodes the content of any path into notices.
func read(path, text string) ([]notice.Notice, error) {
	one := func(n notice.Notice, err error) ([]notice.Notice, error) {
		if err != nil {
			return nil, err
		}
		return []notice.Notice{n}, nil
	}
	switch path {
	case pathSpot:
		return one(readSpot(text))
	case pathRebalance:
		return one(readRebalance(text))
	case pathAutoScaling:
		if n, ok := readLifecycle(text); ok {
			return []notice.Notice{n}, nil
		}
		return nil, nil
	}
	return readMaintenance(text, path == pathHistory)
}

// samples are real contents of each path.
var samples = map[string]string{
	"spot-terminate.json": pathSpot, "spot-stop.json": pathSpot, "spot-hibernate.json": pathSpot,
	"rebalance.json": pathRebalance, "scheduled.json": pathScheduled, "scheduled-none.json": pathScheduled, "history.json": pathHistory,
	"lifecycle-terminated.txt": pathAutoScaling, "lifecycle-inservice.txt": pathAutoScaling, "lifecycle-warmed.txt": pathAutoScaling,
}

func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSamples(t *testing.T) {
	for name, path := range samples {
		t.Run(name, func(t *testing.T) {
			notices, err := read(path, sample(t, name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(notices)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name))+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("reading %s (-want +got), update it with -update:\n%s", name, diff)
			}
		})
	}
}

func TestOddities(t *testing.T) {
	tests := []struct {
		name, path, text string
		want             string // id and deadline of each notice, or the error
	}{
		{"spot in capitals", pathSpot, `{"Action":" TERMINATE ","Time":"2026-05-11T08:16:02Z"}`, "imds/SpotInterruption/terminate/2026-05-11T08:16:02Z hard 08:16:02"},
		{"spot in another zone", pathSpot, `{"action":"stop","time":"2026-05-11T10:16:02+02:00"}`, "imds/SpotInterruption/stop/2026-05-11T08:16:02Z hard 08:16:02"},
		{"spot with no time", pathSpot, `{"action":"terminate"}`, "imds/SpotInterruption/terminate/"},
		{"spot with an action of a later day", pathSpot, `{"action":"vaporise","time":"2026-05-11T08:16:02Z"}`, "imds/SpotInterruption//2026-05-11T08:16:02Z hard 08:16:02"},
		{"spot that says nothing", pathSpot, `{}`, `"{}" has neither`},
		{"spot, a page of a captive portal", pathSpot, `<html>`, "expected a JSON object"},
		{"spot, a list", pathSpot, `[]`, "expected a JSON object"},
		{"spot, a zero time", pathSpot, `{"action":"","time":"0001-01-01T00:00:00Z"}`, "has neither"},
		{"rebalance with no time", pathRebalance, `{"noticeTime":""}`, "is not a valid time"},
		{"rebalance, text", pathRebalance, `2026-05-11T08:02:40Z`, "expected a JSON object"},
		{"lifecycle with a newline", pathAutoScaling, "Terminated\n", "imds/AutoScalingTermination/Terminated"},
		{"lifecycle: standby lives", pathAutoScaling, "Standby", ""},
		{"lifecycle: detached lives", pathAutoScaling, "Detached", ""},
		{"lifecycle: warm and terminated is no node's death", pathAutoScaling, "Warmed:Terminated", ""},
		{"lifecycle: a word of a later day", pathAutoScaling, "Terminated:Soon", ""},
		{"lifecycle: nothing", pathAutoScaling, "", ""},
		{"scheduled: empty", pathScheduled, " ", ""},
		{"scheduled: an object", pathScheduled, `{}`, "cannot unmarshal"},
		{"scheduled: one of two can be read", pathScheduled, `[{"Code":"instance-stop","EventId":"instance-event-1","NotBefore":"soon"},
			{"Code":"instance-stop","EventId":"instance-event-2","NotBefore":"1 Jun 2026 04:00:00 GMT"}]`,
			"imds/ScheduledChange/instance-event-2/instance-stop/2026-06-01T04:00:00Z//active soft 04:00:00; has no valid start time"},
		{"scheduled: a zone that Go does not know", pathScheduled, `[{"Code":"instance-stop","EventId":"instance-event-1","NotBefore":"1 Jun 2026 04:00:00 PST"}]`, "has no valid start time"},
		{"scheduled: RFC 3339", pathScheduled, `[{"Code":"instance-stop","EventId":"instance-event-2","NotBefore":"2026-06-01T04:00:00Z"}]`,
			"imds/ScheduledChange/instance-event-2/instance-stop/2026-06-01T04:00:00Z//active soft 04:00:00"},
		{"scheduled: cancelled by its state alone", pathScheduled, `[{"Code":"instance-stop","EventId":"instance-event-2","State":"canceled"}]`,
			"imds/ScheduledChange/instance-event-2/instance-stop///over"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			notices, err := read(test.path, test.text)
			var got []string
			for _, n := range notices {
				line := n.ID
				if n.Deadline != nil {
					line += fmt.Sprintf(" %s %s", strings.ToLower(string(n.Deadline.Type)), n.Deadline.Time.UTC().Format(time.TimeOnly))
				}
				got = append(got, line)
			}
			if err != nil {
				got = append(got, err.Error())
			}
			all := strings.Join(got, "; ")
			last := strings.Split(test.want, "; ")
			if err == nil && all != test.want || err != nil && !strings.Contains(all, last[len(last)-1]) || !strings.HasPrefix(all, strings.Join(last[:len(last)-1], "; ")) {
				t.Errorf("got %q, want %q", all, test.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for name, path := range samples {
		f.Add(path, sample(f, name))
	}
	f.Add(pathSpot, `{"action":"`+strings.Repeat("x", 300)+`","time":"9999-12-31T23:59:59Z"}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		notices, _ := read(path, text)
		for _, n := range notices {
			m := notice.ToMetadata(&n)
			if !strings.HasPrefix(m.ID, "imds/") || len(m.ID) > 128 || m.Subject == "" || utf8.RuneCountInString(m.Subject) > 128 ||
				utf8.RuneCountInString(m.EventTypeCode) > 128 || utf8.RuneCountInString(m.Description) > 512 {
				t.Errorf("the CRD would refuse %+v", m)
			}
			if _, err := notice.FromMetadata(&m, "i-0a1b2c3d4e5f60718", time.Now()); err != nil {
				t.Errorf("the controller would refuse %+v: %v", m, err)
			}
			if _, err := json.Marshal(n); err != nil {
				t.Errorf("%+v: %v", n, err)
			}
			if n.Deadline != nil && (!poll.Plausible(n.Deadline.Time.Time) || (n.Deadline.Type == v1beta1.DeadlineHard) != (n.Kind == notice.KindSpotInterruption)) {
				t.Errorf("a deadline of %s is %v", n.Kind, n.Deadline)
			}
			if n.Kind == notice.KindScheduledChange && n.Deadline == nil && !n.Withdrawn {
				t.Errorf("a node would be emptied at once by %q", text)
			}
		}
	})
}
