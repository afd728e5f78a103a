package doctor

import (
	"strings"
	"testing"
)

func TestOldKOps(t *testing.T) {
	pool := []Group{{Name: "bare"}, {Name: "nodes", Hooks: []Hook{{Name: "drain"}, {Name: "kops-warmpool"}}}}
	for name, tc := range map[string]struct {
		image  string
		groups []Group
		want   string
	}{
		"1.28":                      {"registry.example/kops/kops-controller:1.28.5", pool, "kOps 1.28 creates"},
		"1.9, in a mirror":          {"mirror.example:5000/x/kops-controller:v1.9.0@sha256:00", pool, "kOps 1.9 creates"},
		"a beta of 1.28":            {"kops-controller:1.28-beta.1", pool, "kOps 1.28 creates"},
		"1.29":                      {"registry.example/kops/kops-controller:1.29.0", pool, ""},
		"1.36":                      {"registry.example/kops/kops-controller:1.36.0", pool, ""},
		"2.0":                       {"registry.example/kops/kops-controller:2.0.0", pool, ""},
		"a number that is too long": {"registry.example/kops/kops-controller:1.28000.0", pool, ""},
		"by digest alone":           {"registry.example/kops/kops-controller@sha256:1.28", pool, ""},
		"another program":           {"registry.example/kops/dns-controller:1.28.5", pool, ""},
		"an image with its name":    {"registry.example/not-kops-controller:1.28.5", pool, ""},
		"no warm pool":              {"registry.example/kops/kops-controller:1.28.5", pool[:1], ""},
	} {
		found := oldKOps([]Workload{{Object: "deployment x/y", Images: []string{"nginx:1.27.0"}}, {Object: "daemonset kube-system/kops-controller", Images: []string{tc.image}}}, tc.groups)
		got := ""
		for _, f := range found {
			got += f.Problem
			if f.ID != "kops-old" || f.Object != "daemonset kube-system/kops-controller" || !strings.HasPrefix(f.Fix, "upgrade kOps to 1.29 or later") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
