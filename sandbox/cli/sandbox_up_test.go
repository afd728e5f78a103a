package cli

import "testing"

func TestNodesFlag(t *testing.T) {
	for _, tc := range []struct {
		text string
		want nodesFlag
		ok   bool
	}{
		{"0", nodesFlag{}, true},
		{"3", nodesFlag{count: 3}, true},
		{"real", nodesFlag{count: firstReal, real: true}, true},
		{"real:0", nodesFlag{real: true}, true},
		{"real:5", nodesFlag{count: 5, real: true}, true},
		{"real5", nodesFlag{}, false},
		{"real:", nodesFlag{}, false},
		{"", nodesFlag{}, false},
		{"unreal", nodesFlag{}, false},
	} {
		t.Run(tc.text, func(t *testing.T) {
			var got nodesFlag
			err := got.Set(tc.text)
			if (err == nil) != tc.ok || got != tc.want {
				t.Errorf("Set() = %v and %+v, want %+v", err, got, tc.want)
			}
			if err != nil {
				return
			}
			var again nodesFlag
			if err := again.Set(got.String()); err != nil || again != got {
				t.Errorf("%q is read as %+v (%v)", got.String(), again, err)
			}
		})
	}
}
