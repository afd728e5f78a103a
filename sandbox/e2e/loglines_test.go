//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// logLine is a row of the page of logs and Events.
type logLine struct{ where, text string }

var logLineRow = regexp.MustCompile("^\\| ([^|`]+) \\| `([^`]+)` \\|")

// logLines reads a section of the page: what is written, and what is not.
func logLines(t *testing.T, section string) (written, missing []logLine) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "logs-and-events.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	into := &written
	for line := range strings.Lines(text) {
		if strings.Contains(line, "| not written |") {
			into = &missing
		}
		if m := logLineRow.FindStringSubmatch(line); m != nil {
			*into = append(*into, logLine{m[1], m[2]})
		}
	}
	if len(written) < 8 {
		t.Fatalf("only %d rows in section %q", len(written), section)
	}
	return written, missing
}

// findLines looks for all rows of a section in this sandbox.
func (r *rig) findLines(section string) {
	r.t.Helper()
	written, missing := logLines(r.t, section)
	for _, l := range written {
		r.until(fmt.Sprintf("%s to have %q", l.where, l.text), 20*time.Second, func(ctx context.Context) (bool, error) { return r.hasLine(ctx, l) })
	}
	for _, l := range missing {
		if has, err := r.hasLine(r.t.Context(), l); has || err != nil {
			r.t.Errorf("%s has %q, which the page denies (%v)", l.where, l.text, err)
		}
	}
}

// hasLine reports whether a log, the Events or the metrics contain a row.
func (r *rig) hasLine(ctx context.Context, l logLine) (bool, error) {
	switch l.where {
	case "Karpenter's log":
		return hasMessage(r.KarpenterLog(), `"message":"`+l.text+`"`)
	case "Lifeboat's log":
		return hasMessage(r.LifeboatLog(), `"msg":"`+l.text+`"`)
	case "Karpenter's metric":
		return r.metricOf("karpenter", l.text, "") > 0, nil
	case "Lifeboat's metric":
		return r.metric(l.text, "") > 0, nil
	}
	var events corev1.EventList
	if err := r.client.List(ctx, &events); err != nil {
		return false, err
	}
	for _, e := range events.Items {
		if strings.Contains(l.where, e.InvolvedObject.Kind) && e.Reason == l.text {
			return true, nil
		}
	}
	return false, nil
}

func hasMessage(path, text string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return true, nil
		}
	}
	return false, lines.Err()
}
