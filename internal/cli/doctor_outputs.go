package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/report"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// The values of -o that only the command doctor has.
const (
	outputSARIF = "sarif"
	outputJUnit = "junit"
)

// reportFile writes the findings for another program, if -o says so.
func (d *doctorRun) reportFile(all []finding.Finding) (done bool, _ error) {
	var out []byte
	var err error
	switch d.session.flags.Output {
	case outputSARIF:
		out, err = report.SARIF(all, version.Get().Version, d.filesRead)
	case outputJUnit:
		out, err = report.JUnit(all, d.flags.counts)
	default:
		return false, nil
	}
	d.out.Printf("%s\n", out)
	return true, err
}

// accept removes the findings that the baseline accepts, or writes the baseline.
func (d *doctorRun) accept(all []finding.Finding) ([]finding.Finding, error) {
	if d.flags.baseline == "" {
		return all, nil
	}
	old, err := readBaseline(d.flags.baseline, d.flags.writeBaseline)
	if err != nil {
		return nil, err
	}
	if d.flags.writeBaseline {
		old = old.With(all)
		data, err := json.MarshalIndent(old, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("writing the baseline: %w", err)
		}
		if err := os.WriteFile(d.flags.baseline, append(data, '\n'), 0o644); err != nil { //nolint:gosec // G306: a baseline is kept in version control, and has no secret
			return nil, fmt.Errorf("writing the baseline: %w", err)
		}
	}
	left, accepted, stale := old.Filter(all)
	if accepted > 0 {
		d.notes = append(d.notes, fmt.Sprintf("The baseline accepts %s.", counted(accepted, "finding")))
	}
	for _, a := range stale {
		d.notes = append(d.notes, fmt.Sprintf("The baseline accepts %s of %s, which is no longer found.", a.ID, a.Object))
	}
	return left, nil
}

// readBaseline reads the file of accepted findings. One that is about to be written need
// not exist.
func readBaseline(name string, optional bool) (report.Baseline, error) {
	data, err := os.ReadFile(name)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return report.Baseline{}, nil
	}
	if err != nil {
		return report.Baseline{}, fmt.Errorf("reading the baseline: %w", err)
	}
	b, err := report.ReadBaseline(data)
	if err != nil {
		return report.Baseline{}, fmt.Errorf("reading the baseline %s: %w", name, err)
	}
	return b, nil
}
