package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDurationOffsetAndRelative(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	for _, c := range []struct {
		d                          time.Duration
		duration, offset, relative string
	}{
		{0, "0s", "+0.0s", "now"},
		{440 * time.Millisecond, "0s", "+0.4s", "now"},
		{12 * time.Second, "12s", "+12.0s", "in 12s"},
		{59_960 * time.Millisecond, "1m", "+1m", "in 1m"},
		{112 * time.Second, "1m52s", "+1m52s", "in 1m52s"},
		{2 * time.Minute, "2m", "+2m", "in 2m"},
		{3*time.Hour + 5*time.Minute, "3h5m", "+3h5m", "in 3h5m"},
		{52 * time.Hour, "2d4h", "+2d4h", "in 2d4h"},
		{-3100 * time.Millisecond, "-3s", "-3.1s", "3s ago"},
	} {
		got := []string{Duration(c.d), Offset(c.d), Relative(now.Add(c.d), now)}
		if diff := cmp.Diff([]string{c.duration, c.offset, c.relative}, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.d, diff)
		}
	}
}

func TestTablePadsByRunesWithoutColours(t *testing.T) {
	table := NewTable("POD", "STEP", "WHY")
	table.Row(Cell{Text: "shop/käse-0"}, Cell{Text: "Evict", Style: Good}, Cell{Text: "leaves now"})
	table.Row(Cell{Text: "web"}, Cell{Text: "Waits", Style: Warn})
	for _, c := range []struct {
		name  string
		color bool
		want  string
	}{
		{"plain", false, "POD          STEP   WHY\nshop/käse-0  Evict  leaves now\nweb          Waits\n"},
		{"coloured", true, "\x1b[2mPOD\x1b[0m          \x1b[2mSTEP\x1b[0m   \x1b[2mWHY\x1b[0m\n" +
			"shop/käse-0  \x1b[32mEvict\x1b[0m  leaves now\nweb          \x1b[33mWaits\x1b[0m\n"},
	} {
		var out bytes.Buffer
		table.Write(Stream{Writer: &out, Color: c.color})
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestProgressWithoutTerminalReportsLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(Stream{Writer: &out})
		p.Step("starting %s", "etcd")
		time.Sleep(14 * time.Second)
		p.Step("starting the API server")
		time.Sleep(14 * time.Second)
		p.Step("starting the API server")
		time.Sleep(14 * time.Second) // 42 s
		p.Idle()
		time.Sleep(14 * time.Second)
		p.Print(Stream{Writer: &out}, "a line that stays\n")
		p.Step("starting the scheduler")
		time.Sleep(14 * time.Second) // 70 s
		p.Stop()
		p.Step("too late")
		time.Sleep(time.Minute)
		want := "starting the API server\nstarting the API server 16s\na line that stays\nstarting the scheduler 4s\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestProgressOnTerminalIsErasedAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var progress, out bytes.Buffer
		p := NewProgress(Stream{Writer: &progress, TTY: true, Width: 24})
		p.Step("waiting for a very long thing indeed")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		p.Print(Stream{Writer: &out}, "a line that stays\n")
		p.Idle()
		idle := progress.Len()
		time.Sleep(time.Second)
		synctest.Wait()
		if progress.Len() != idle {
			t.Errorf("it moved while nothing was waited for")
		}
		p.Step("waiting for a very long thing indeed, again")
		time.Sleep(3 * time.Second)
		p.Stop()
		p.Stop()
		time.Sleep(time.Second) // nothing is redrawn any more

		drawn := strings.Split(progress.String(), "\r\x1b[K")
		if len(drawn) < 10 {
			t.Fatalf("it moved %d times in 3 s", len(drawn))
		}
		if last := drawn[len(drawn)-1]; last != "" {
			t.Errorf("Stop left %q behind", last)
		}
		for _, line := range drawn {
			if n := len([]rune(line)); n > 24 {
				t.Errorf("%q has %d columns, more than the terminal's 24", line, n)
			}
		}
		if !strings.HasSuffix(drawn[len(drawn)-2], " 3s") {
			t.Errorf("%q does not tell how long it has been", drawn[len(drawn)-2])
		}
		if got := out.String(); got != "a line that stays\n" {
			t.Errorf("Print wrote %q", got)
		}
	})
}

func TestNewStreamIsPlainWithoutATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, w := range map[string]interface{ Write([]byte) (int, error) }{"a buffer": &bytes.Buffer{}, "a file": file} {
		if s := NewStream(w, func(string) string { return "" }); s.TTY || s.Color || s.Width != 0 {
			t.Errorf("%s: got %+v, want plain", name, s)
		}
	}
	if got := (Stream{}).Paint(Bad, "text"); got != "text" {
		t.Errorf("painted without colours: %q", got)
	}
}
