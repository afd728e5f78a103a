package sqs

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// reading is the content of a golden file.
type reading struct {
	Notices    []notice.Notice `json:"notices,omitempty"`
	Groups     []readGroup     `json:"groups,omitempty"`
	Reports    []intake.Report `json:"reports,omitempty"`
	Probe      *intake.Probe   `json:"probe,omitempty"`
	Unconcern  string          `json:"ofNoConcern,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"`
}

type readGroup struct {
	Filter string        `json:"filter"`
	Value  string        `json:"value"`
	Each   notice.Notice `json:"each"`
}

func readingOf(d decoded) reading {
	r := reading{Notices: d.notices, Reports: d.reports, Probe: d.probe, Unconcern: d.unconcern}
	for _, g := range d.groups {
		r.Groups = append(r.Groups, readGroup{g.filter, g.value, g.notice})
	}
	return r
}

func samples(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no samples: %v", err)
	}
	bodies := map[string]string{}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		bodies[strings.TrimSuffix(path, ".json")] = string(body)
	}
	return bodies
}

func TestDecodeSamples(t *testing.T) {
	for name, body := range samples(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			d, err := decode(body)
			r := readingOf(d)
			if err != nil {
				r.Unreadable = err.Error()
			}
			got, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := name + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("reading (-want +got), rewrite it with -update:\n%s", diff)
			}
		})
	}
}

// The group is then refreshed sooner.
func TestAutoScalingNoticesNameGroup(t *testing.T) {
	found := 0
	for name, body := range samples(t) {
		d, err := decode(body)
		if err != nil || strings.HasSuffix(name, "autoscaling-test") {
			continue
		}
		if about := strings.HasPrefix(filepath.Base(name), "autoscaling-"); about != (d.scaling == "workers-a") {
			t.Errorf("%s: %q", name, d.scaling)
		} else if about {
			found++
		}
	}
	if found < 10 {
		t.Errorf("only %d samples", found)
	}
}

func TestEveryDecoderHasSample(t *testing.T) {
	seen := map[*row]bool{}
	for _, body := range samples(t) {
		if e, err := open([]byte(body)); err == nil {
			seen[find(e.Source, e.DetailType)] = true
		}
	}
	for i := range kinds {
		if !seen[&kinds[i]] {
			t.Errorf("no sample in testdata/ is of %s %q", kinds[i].source, kinds[i].detailTypes)
		}
		if (kinds[i].read == nil) == (kinds[i].unconcern == "") {
			t.Errorf("%s %q has to have either a reader or a reason why it is of no concern", kinds[i].source, kinds[i].detailTypes)
		}
	}
}

func TestDecodersCoverEveryKind(t *testing.T) {
	var got []string
	for _, body := range samples(t) {
		d, _ := decode(body)
		for _, n := range d.notices {
			got = append(got, n.Kind)
		}
		for _, g := range d.groups {
			got = append(got, g.notice.Kind)
		}
	}
	slices.Sort(got)
	want := slices.DeleteFunc(notice.Kinds(), func(kind string) bool {
		return kind == notice.KindInstanceStatus // AWS sends no events for status checks; they are polled
	})
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("kinds (-known +decoded):\n%s", diff)
	}
}

func TestBodySizeIsLimited(t *testing.T) {
	body := samples(t)["testdata/spot-terminate"]
	fits := body + strings.Repeat(" ", maxBody-len(body))
	if _, err := decode(fits); err != nil {
		t.Errorf("a body of 1 MiB: %v", err)
	}
	if _, err := decode(fits + " "); err == nil {
		t.Error("a body above 1 MiB was read")
	}
}

func TestDerivedIDs(t *testing.T) {
	body := samples(t)["testdata/spot-loose"]
	id := func(old, by string) string {
		d, err := decode(strings.ReplaceAll(body, old, by))
		if err != nil {
			t.Fatal(err)
		}
		return d.notices[0].ID
	}
	same := id("invented", "imagined")
	if other := id(`"region"`, `"place"`); other != same {
		t.Errorf("the same notice has ids %s and %s", same, other)
	}
	if other := id("08:14:02.250Z", "08:14:03.250Z"); other == same {
		t.Error("notices of different times have one id")
	}
	if other := id("60718", "60719"); other == same {
		t.Error("notices of different instances have one id")
	}
	if long := id(`"id":"  "`, `"id":"`+strings.Repeat("x", 129)+`"`); long != same {
		t.Errorf("an id that is too long became %s", long)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range samples(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		d, err := decode(body)
		again, errAgain := decode(body)
		if diff := cmp.Diff(d, again, cmp.AllowUnexported(decoded{}, group{})); diff != "" || (err == nil) != (errAgain == nil) {
			t.Fatalf("two readings differ:\n%s%v\n%v", diff, err, errAgain)
		}
		switch {
		case err != nil:
			if u, ok := errors.AsType[*unreadableError](err); !ok || u.field == "" || u.cause == "" {
				t.Fatalf("error explains nothing: %#v", err)
			}
			return
		case (len(d.notices)+len(d.groups)+len(d.reports) == 0 && d.probe == nil) == (d.unconcern == ""):
			t.Fatalf("neither a notice nor of no concern, or both: %+v", d)
		}
		all := slices.Clone(d.notices)
		for _, g := range d.groups {
			n := g.notice
			n.InstanceID = "i-0a1b2c3d4e5f60718"
			all = append(all, n)
		}
		for _, n := range all {
			if n.ID == "" || len(n.ID) > maxID || n.Time.IsZero() || n.Source != Name ||
				!slices.Contains(notice.Kinds(), n.Kind) || !instanceID.MatchString(n.InstanceID) {
				t.Fatalf("notice lacks something: %+v", n)
			}
			if _, err := json.Marshal(n); err != nil {
				t.Fatalf("notice cannot be recorded: %v", err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	bodies := samples(b)
	for _, name := range []string{"spot-terminate", "state-running", "spot-sns", "health-stop", "bad-not-json"} {
		b.Run(name, func(b *testing.B) {
			body := bodies["testdata/"+name]
			b.ReportAllocs()
			for b.Loop() {
				_, _ = decode(body)
			}
		})
	}
}
