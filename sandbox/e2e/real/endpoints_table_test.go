//go:build e2e

package real

import (
	"testing"
	"time"
)

func TestEndpointDip(t *testing.T) {
	for name, tc := range map[string]struct {
		seen []endpointCount
		want dip
	}{
		"never":                       {[]endpointCount{{at(0), 4}, {at(12), 5}, {at(15), 4}}, dip{Wanted: 4, Lowest: 4}},
		"for three seconds":           {[]endpointCount{{at(0), 4}, {at(12), 3}, {at(13), 2}, {at(15), 4}}, dip{Wanted: 4, Lowest: 2, Below: 3 * time.Second}},
		"before the drain":            {[]endpointCount{{at(0), 1}, {at(9), 4}}, dip{Wanted: 4, Lowest: 4}},
		"since before the drain":      {[]endpointCount{{at(0), 3}, {at(11), 4}}, dip{Wanted: 4, Lowest: 3, Below: time.Second}},
		"to the end":                  {[]endpointCount{{at(0), 4}, {at(18), 0}, {at(25), 4}}, dip{Wanted: 4, Lowest: 0, Below: 2 * time.Second}},
		"after the drain":             {[]endpointCount{{at(0), 4}, {at(21), 0}}, dip{Wanted: 4, Lowest: 4}},
		"the surplus of another time": {[]endpointCount{{at(0), 9}, {at(12), 3}, {at(13), 9}}, dip{Wanted: 4, Lowest: 3, Below: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&endpointLog{seen: tc.seen}).between(4, at(10), at(20)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
