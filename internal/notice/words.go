package notice

import "strings"

// ProbeSource is the source of Lifeboat's own test events, which check the path through
// EventBridge; they are never notices. EventBridge rejects events whose source begins with
// "aws." unless AWS sends them (EventBridge API Reference, PutEvents), so a rule can only be
// tested with another source.
const ProbeSource = "lifeboat.dev"

// Cut shortens a value from the cloud to the limit of the CRD, in characters. Only unexpected
// values are that long.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most])
	}
	return s
}
