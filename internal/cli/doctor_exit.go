package cli

import "github.com/lifeboat-dev/lifeboat/internal/doctor/finding"

// exitOf returns the exit code for the worst finding that counts. A part that could not
// be checked at all always counts.
func (f doctorFlags) exitOf(all []finding.Finding, failed error) error {
	has := func(s finding.Severity) bool { return f.counts(s) && finding.Has(all, s) }
	switch {
	case has(finding.Broken):
		return exitError{Code: exitBroken, Err: failed}
	case failed != nil:
		return incomplete(failed)
	case has(finding.Unknown):
		return exitError{Code: exitIncomplete}
	case has(finding.Warning), has(finding.Info):
		return exitError{Code: exitWarning}
	}
	return nil
}

// incomplete gives an error the exit code for incomplete checks.
func incomplete(err error) error { return exitError{Code: exitIncomplete, Err: err} }
