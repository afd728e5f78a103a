package scenario

import (
	"fmt"
	"strings"
)

const (
	chartColumns = 60
	chartRows    = 6 // at most
	chartTick    = 10
)

// chart draws the number of Ready pods from the notice to the end. A column is the minimum of its
// period, so that a short dip stays visible, and a row is a number of pods. A dot marks a missing
// pod. Lines are at most 80 characters long.
func chart(levels []Level, end float64) []string {
	if len(levels) == 0 || end <= 0 {
		return nil
	}
	columns := make([]Level, chartColumns)
	most := 0
	for i := range columns {
		columns[i] = least(levels, end*float64(i)/chartColumns, end*float64(i+1)/chartColumns)
		most = max(most, columns[i].Wanted)
	}
	rows := min(most, chartRows)
	var out []string
	for row := rows; row > 0; row-- {
		need := (row*most + rows - 1) / rows
		var b strings.Builder
		for _, c := range columns {
			b.WriteByte(mark(c, need))
		}
		out = append(out, fmt.Sprintf("%8d |%s", need, strings.TrimRight(b.String(), " ")))
	}
	tick := "+" + strings.Repeat("-", chartTick-1)
	return append(out, strings.Repeat(" ", 9)+strings.Repeat(tick, chartColumns/chartTick)+"+", ticks(end))
}

func mark(c Level, need int) byte {
	switch {
	case c.Ready >= need:
		return '#'
	case c.Wanted >= need:
		return '.'
	default:
		return ' '
	}
}

// ticks writes the seconds below the axis.
func ticks(end float64) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", 9))
	for i := 0; i <= chartColumns; i += chartTick {
		fmt.Fprintf(&b, "%-*s", chartTick, fmt.Sprintf("%.0fs", end*float64(i)/chartColumns))
	}
	return strings.TrimRight(b.String(), " ")
}

// least is the lowest number of Ready pods in a period.
func least(levels []Level, from, to float64) Level {
	var out Level
	found := false
	for i, l := range levels {
		over := i+1 < len(levels) && levels[i+1].Seconds <= from
		if over || l.Seconds >= to && found {
			continue
		}
		if !found || l.Wanted-l.Ready > out.Wanted-out.Ready {
			out, found = l, true
		}
	}
	return out
}
