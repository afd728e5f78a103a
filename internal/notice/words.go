package notice

import "strings"

// ProbeSource is the source of the events by which Lifeboat proves its own
// wiring; they are never notices. EventBridge refuses events whose source begins
// with "aws." from anybody but AWS (EventBridge API Reference, PutEvents), so
// that a rule can only be tried with a source of one's own.
const ProbeSource = "lifeboat.dev"

// Cut shortens a word of the cloud's to what the CRD takes for it, in
// characters, which only words that mean nothing to us can need.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most])
	}
	return s
}
