package notice_test

import (
	"math/rand/v2"
	"testing"
	"unicode"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// No text of a notice keeps a control or formatting character, and a second pass changes
// nothing: the same message must give the same id.
func TestSanitizeLeavesNoControlCharacters(t *testing.T) {
	alphabet := []rune("aZ ä€🚤\x00\x07\x1b[31m\x7f\u0085\u009b\u202e\u2066\u200b\ufeff\t\r\n\u2028\xff")
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			s := ""
			for range r.IntN(20) {
				s += string(alphabet[r.IntN(len(alphabet))])
			}
			return s
		}
		hook := &v1beta1.LifecycleHookInvocation{Group: text(), Name: text(), Token: text()}
		before := *hook
		n := v1beta1.Notice{ID: text(), InstanceAction: text(), InstanceState: text(), EventTypeCode: text(), Subject: text(), Description: text(), LifecycleHook: hook}
		notice.Sanitize(&n)
		if *hook != before {
			t.Fatalf("seed %d: the caller's hook was changed", seed)
		}
		all := n.ID + n.InstanceAction + n.InstanceState + n.EventTypeCode + n.Subject + n.Description + n.LifecycleHook.Group + n.LifecycleHook.Name + n.LifecycleHook.Token
		for _, c := range all {
			if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
				t.Fatalf("seed %d: %q has %U", seed, all, c)
			}
		}
		again := n
		notice.Sanitize(&again)
		if *again.LifecycleHook != *n.LifecycleHook || again.ID != n.ID || again.Description != n.Description {
			t.Fatalf("seed %d: a second pass changed %+v to %+v", seed, n, again)
		}
	}
	n := v1beta1.Notice{Description: "the group web\x1b]52;c;aGk=\x07 has\nfailed"}
	if notice.Sanitize(&n); n.Description != "the group web]52;c;aGk= has failed" {
		t.Errorf("%q", n.Description)
	}
}
