package notice

import (
	"strings"
	"unicode"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

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

// Sanitize removes control and formatting characters from the text of a notice. The text
// comes from outside, and reaches the terminals of operators: an escape sequence there
// can hide lines or write to the clipboard.
func Sanitize(n *v1beta1.Notice) {
	for _, text := range []*string{&n.ID, &n.InstanceAction, &n.InstanceState, &n.EventTypeCode, &n.Subject, &n.Description} {
		*text = Printable(*text)
	}
	if n.LifecycleHook != nil {
		hook := *n.LifecycleHook
		hook.Group, hook.Name, hook.Token = Printable(hook.Group), Printable(hook.Name), Printable(hook.Token)
		n.LifecycleHook = &hook
	}
}

// Printable replaces line breaks and tabs by spaces, and removes other control and
// formatting characters, such as ESC and marks of the writing direction.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("\t\n\r\u2028\u2029", r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
