package cli

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// doctorReport is the output of doctor with -o json.
type doctorReport struct {
	Subject  string                   `json:"subject,omitempty"`
	Findings []finding.Finding        `json:"findings"`
	Counts   map[finding.Severity]int `json:"counts"`
	Notes    []string                 `json:"notes,omitempty"`
}

// report writes the findings, most severe first.
func (d *doctorRun) report(all []finding.Finding) error {
	counts := map[finding.Severity]int{}
	for _, severity := range finding.Severities() {
		counts[severity] = 0
	}
	for _, f := range all {
		counts[f.Severity]++
	}
	if d.isJSON() {
		if all == nil {
			all = []finding.Finding{}
		}
		return d.writeJSON(doctorReport{Subject: d.subject, Findings: all, Counts: counts, Notes: d.notes})
	}
	if done, err := d.reportFile(all); done || err != nil {
		return err
	}
	if d.subject != "" {
		d.out.Printf("%s\n", d.out.Paint(terminal.Bold, d.subject))
	}
	for _, note := range d.notes {
		d.out.Printf("%s\n", d.out.Paint(terminal.Dim, note))
	}
	for _, severity := range finding.Severities() {
		if counts[severity] > 0 {
			d.reportSeverity(severity, all)
		}
	}
	if d.nothing {
		d.out.Printf("No file is about wiring: there was nothing to check.\n")
		return nil
	}
	d.out.Printf("\n%s\n", summary(counts))
	return nil
}

func (d *doctorRun) reportSeverity(severity finding.Severity, all []finding.Finding) {
	style := map[finding.Severity]terminal.Style{
		finding.Broken: terminal.Bad, finding.Unknown: terminal.Warn, finding.Warning: terminal.Warn, finding.Info: terminal.Dim,
	}[severity]
	d.out.Printf("\n%s\n", d.out.Paint(style, strings.ToUpper(string(severity))))
	for _, f := range all {
		if f.Severity != severity {
			continue
		}
		d.out.Printf("  %s  %s\n    %s\n", d.out.Paint(terminal.Bold, f.Object), d.out.Paint(terminal.Dim, f.ID), f.Problem)
		if f.Fix != "" {
			d.out.Printf("    %s %s\n", d.out.Paint(terminal.Good, "→"), command.Rename(f.Fix, d.name))
		}
	}
}

// summary returns the last line of the report.
func summary(counts map[finding.Severity]int) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, what)
		}
	}
	add(counts[finding.Broken], fmt.Sprintf("%d broken", counts[finding.Broken]))
	add(counts[finding.Unknown], fmt.Sprintf("%d unknown", counts[finding.Unknown]))
	add(counts[finding.Warning], counted(counts[finding.Warning], "warning"))
	add(counts[finding.Info], counted(counts[finding.Info], "note"))
	switch {
	case len(parts) == 0:
		return "All checks passed: every kind of notice reaches the queue."
	case counts[finding.Broken] == 0:
		return "Nothing is broken: " + strings.Join(parts, ", ") + "."
	}
	return strings.Join(parts, ", ") + "."
}
