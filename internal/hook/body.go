package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// MaxBody is the most that a body may come to, in bytes.
const MaxBody = 64 << 10

// maxText bounds the one-line summary, in bytes.
const maxText = 1000

// told is a Subject as templates and the default body see it.
type told struct {
	Text         string             `json:"text"`
	Interruption string             `json:"interruption"`
	UID          string             `json:"uid"`
	Node         string             `json:"node"`
	InstanceID   string             `json:"instanceID"`
	Kind         string             `json:"kind"`
	Policy       string             `json:"policy"`
	Phase        string             `json:"phase"`
	Reason       string             `json:"reason"`
	Message      string             `json:"message"`
	Deadline     string             `json:"deadline,omitempty"`
	Drill        bool               `json:"drill"`
	Pods         v1alpha1.PodCounts `json:"pods"`
}

func tells(s Subject) told {
	return told{
		Text: Summary(s), Interruption: s.Interruption, UID: string(s.UID), Node: s.Node, InstanceID: s.InstanceID,
		Kind: s.Kind, Policy: s.Policy, Phase: string(s.Phase), Reason: s.Reason, Message: s.Message,
		Deadline: s.deadline(), Drill: s.Drill, Pods: s.Pods,
	}
}

// Summary is the subject in one line, such as
// "ip-10-0-1-2 (i-0abc, SpotInterruption): Drained: 12 of 12 pods moved".
func Summary(s Subject) string {
	text := s.Node
	if text == "" {
		text = s.Interruption
	}
	var known []string
	for _, part := range []string{s.InstanceID, s.Kind} {
		if part != "" && part != text {
			known = append(known, part)
		}
	}
	if len(known) > 0 {
		text += " (" + strings.Join(known, ", ") + ")"
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	if lines := strings.Join(strings.FieldsFunc(s.Message, func(r rune) bool { return r == '\n' || r == '\r' }), "; "); lines != "" {
		text += ": " + lines
	}
	return clip(text, maxText)
}

// Body returns the body of a webhook's request: what its template makes of the
// subject, or else the whole subject as JSON, with a one-line "text" that chat
// systems show.
func Body(w v1alpha1.Webhook, s Subject) ([]byte, error) {
	if w.Body == "" {
		body, err := marshal(tells(s))
		if err == nil && len(body) > MaxBody {
			err = errTooLong
		}
		return body, err
	}
	t, err := parseBody(w.Body)
	if err != nil {
		return nil, err
	}
	var out bounded
	if err := t.Execute(&out, tells(s)); err != nil {
		return nil, fmt.Errorf("making the body: %w", err)
	}
	return out.Bytes(), nil
}

// parseBody parses a template and refuses those that could go on for ever.
// Without loops and calls, a template does no more than it is long.
func parseBody(text string) (*template.Template, error) {
	if len(text) > MaxBody {
		return nil, fmt.Errorf("the template is longer than %d bytes", MaxBody)
	}
	t, err := template.New("body").Funcs(functions()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	for _, one := range t.Templates() {
		if one.Tree != nil && loops(one.Root) {
			return nil, errors.New("the template has range, template or block in it: nothing there is a list; use if, with and variables")
		}
	}
	return t, nil
}

// loops tells whether anything under a node is run again or calls others.
func loops(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.RangeNode, *parse.TemplateNode:
		return true
	case *parse.IfNode:
		return loops(n.List) || loops(n.ElseList)
	case *parse.WithNode:
		return loops(n.List) || loops(n.ElseList)
	case *parse.ListNode:
		if n == nil {
			return false
		}
		for _, child := range n.Nodes {
			if loops(child) {
				return true
			}
		}
	}
	return false
}

// marshal writes JSON as people write it, with < and > as they are.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

var errTooLong = fmt.Errorf("the body is longer than %d bytes", MaxBody)

// bounded is a buffer that takes no more than MaxBody.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxBody {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// clip cuts a text to so many bytes, between characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const end = "…"
	return strings.ToValidUTF8(text[:most-len(end)], "") + end
}
