package source

import "testing"

func TestSemanticVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":                  "1.2.3",
		"1.2.3-rc.1":              "1.2.3-rc.1",
		"v0.1.0-5-g0123abc-dirty": "0.1.0-5-g0123abc-dirty",
		"0123456":                 "0.0.0-g0123456",
		"f099a2aa-dirty":          "0.0.0-gf099a2aa-dirty",
		"feature/x":               "0.0.0-gfeature-x",
	} {
		if got := semantic(version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}
