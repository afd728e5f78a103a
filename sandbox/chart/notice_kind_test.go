//go:build e2e

package chart_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kind becomes the value of a taint, for which the API server has the same rules as for a label.
func TestNoticeKindIsLabelValue(t *testing.T) {
	const pattern, longest = "spec.notices[0].kind in body should match", "Too long: may not be more than 63 bytes"
	for kind, want := range map[string]string{
		"SpotInterruption":      "",
		"later.Release-2_x":     "",
		"Spot Interruption":     pattern,
		"-SpotInterruption":     pattern,
		"SpotInterruption.":     pattern,
		"Spot/Interruption":     pattern,
		"Entzügelt":             pattern,
		strings.Repeat("k", 63): "",
		strings.Repeat("k", 64): longest,
	} {
		n := newNotice("1", "sqs")
		n.Kind = kind
		check(t, admin(t).Create(t.Context(), record("i-kind", "node-a", n), client.DryRunAll), want)
	}
}
