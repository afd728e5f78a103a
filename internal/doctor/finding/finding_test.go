package finding_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

func TestSortIsStableBySeverity(t *testing.T) {
	all := []finding.Finding{
		{ID: "a", Severity: finding.Info}, {ID: "b", Severity: finding.Broken}, {ID: "c", Severity: finding.Warning},
		{ID: "d", Severity: finding.Unknown}, {ID: "e", Severity: finding.Broken},
	}
	finding.Sort(all)
	var got []string
	for _, f := range all {
		got = append(got, f.ID)
	}
	if diff := cmp.Diff([]string{"b", "e", "d", "c", "a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHas(t *testing.T) {
	all := []finding.Finding{{Severity: finding.Warning}}
	if !finding.Has(all, finding.Warning) || finding.Has(all, finding.Broken) || finding.Has(nil, finding.Info) {
		t.Error("tells severities apart wrongly")
	}
}
