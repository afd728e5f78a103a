package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// manyPods is from how many pods on a workload's pods share one row.
const manyPods = 3

// likePods are pods of one workload that leave in the same way at different times, in order.
type likePods []plannedPod

// groupPods puts the pods of a workload that leave in the same way together, in the order of the first
// of each group.
func groupPods(pods []plannedPod) []likePods {
	type key struct {
		namespace, workload string
		step                drain.Step
		wants               float64
		fits                bool
	}
	at := map[key]int{}
	var groups []likePods
	for _, pod := range pods {
		k := key{pod.Namespace, pod.Workload, pod.Step, pod.WantedGraceSeconds, pod.Fits}
		i, known := at[k]
		if !known || pod.Workload == "" {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], pod)
	}
	var all []likePods
	for _, g := range groups {
		if len(g) >= manyPods {
			all = append(all, g)
			continue
		}
		for _, pod := range g {
			all = append(all, likePods{pod})
		}
	}
	return all
}

// write adds the row of the pods, with the reason of the first one and, if it has another, of the last.
func (l likePods) write(table *terminal.Table, ahead time.Duration) {
	first, last := l[0], l[len(l)-1]
	name := first.Namespace + "/" + first.Name
	if len(l) > 1 {
		name = fmt.Sprintf("%s/%s (%d pods)", first.Namespace, first.Workload[strings.Index(first.Workload, " ")+1:], len(l))
	}
	span := func(value func(plannedPod) *float64) terminal.Cell {
		from, to := formatOffset(value(first), ahead), formatOffset(value(last), ahead)
		if from == to || to == "" {
			return terminal.Cell{Text: from}
		}
		return terminal.Cell{Text: from + " to " + to}
	}
	table.Row(
		terminal.Cell{Text: name, Style: first.style()},
		terminal.Cell{Text: string(first.Step), Style: first.style()},
		span(func(p plannedPod) *float64 { return p.AskedInSeconds }),
		span(func(p plannedPod) *float64 { return p.GoneInSeconds }),
		terminal.Cell{Text: first.grace()},
		span(func(p plannedPod) *float64 { return p.LastCallInSeconds }),
	)
	if len(l) == 1 {
		first.writeReasons(table, "")
		return
	}
	if first.Reason == last.Reason && first.Now == last.Now {
		first.writeReasons(table, "each: ")
		return
	}
	first.writeReasons(table, first.Name+": ")
	last.writeReasons(table, last.Name+": ")
}

// writeReasons adds why a pod waits at first, and why it leaves.
func (p plannedPod) writeReasons(table *terminal.Table, whose string) {
	if first, waits := strings.CutPrefix(p.Now, "waits"); waits {
		table.Under(terminal.Cell{Text: whose + "at first it waits" + first, Style: terminal.Dim})
	} else if p.Now != "" {
		table.Under(terminal.Cell{Text: whose + "at first: " + p.Now, Style: terminal.Dim})
	}
	table.Under(terminal.Cell{Text: whose + p.Reason, Style: terminal.Dim})
}
