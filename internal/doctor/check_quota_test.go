package doctor_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

func TestRuleQuotaIsReportedFromEightyPercent(t *testing.T) {
	for _, tc := range []struct {
		region string
		rules  int
		warns  bool
	}{
		{testRegion, 0, false},
		{testRegion, 239, false},
		{testRegion, 240, true},
		{testRegion, 300, true},
		{testRegion, 301, false},
		{"eu-south-1", 79, false},
		{"eu-south-1", 80, true},
		{"af-south-1", 100, true},
		{"af-south-1", 240, false},
	} {
		s := sound(t)
		s.BusRules, s.Region = tc.rules, tc.region
		warns := false
		for _, f := range doctor.Run(s, want, doctor.Cluster{}) {
			warns = warns || f.ID == "rule-quota"
		}
		if warns != tc.warns {
			t.Errorf("%d rules in %s: reported %v", tc.rules, tc.region, warns)
		}
	}
}
