package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// MaxBody is the largest allowed body, in bytes.
const MaxBody = 64 << 10

// maxText bounds the one-line summary, in bytes.
const maxText = 1000

// message is a Subject as templates and the default body present it.
type message struct {
	Text         string            `json:"text"`
	Interruption string            `json:"interruption"`
	UID          string            `json:"uid"`
	Node         string            `json:"node"`
	InstanceID   string            `json:"instanceID"`
	Kind         string            `json:"kind"`
	Policy       string            `json:"policy"`
	Phase        string            `json:"phase"`
	Reason       string            `json:"reason"`
	Message      string            `json:"message"`
	Deadline     string            `json:"deadline,omitempty"`
	Drill        bool              `json:"drill"`
	Pods         v1beta1.PodCounts `json:"pods"`
}

func newMessage(s Subject) message {
	return message{
		Text: Summary(s), Interruption: s.Interruption, UID: string(s.UID), Node: s.Node, InstanceID: s.InstanceID,
		Kind: s.Kind, Policy: s.Policy, Phase: string(s.Phase), Reason: s.Reason, Message: s.Message,
		Deadline: s.deadline(), Drill: s.Drill, Pods: s.Pods,
	}
}

// fields are the names that templates can use.
func (t message) fields() fields {
	p := t.Pods
	return fields{
		"Text": outside(t.Text), "Interruption": outside(t.Interruption), "UID": outside(t.UID), "Node": outside(t.Node),
		"InstanceID": outside(t.InstanceID), "Kind": outside(t.Kind), "Policy": outside(t.Policy), "Phase": outside(t.Phase),
		"Reason": outside(t.Reason), "Message": outside(t.Message), "Deadline": outside(t.Deadline), "Drill": t.Drill,
		"Pods": fields{
			"Total": int64(p.Total), "Moved": int64(p.Moved), "Leaving": int64(p.Leaving), "Waiting": int64(p.Waiting), "Lost": int64(p.Lost),
		},
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

// Body returns the body of a webhook request: the rendered template, or else
// the whole subject as JSON. The JSON has a one-line "text" field for chat
// systems, with escaped markup. values are the values of w.ValuesFrom; a missing one is empty.
func Body(w v1beta1.Webhook, s Subject, values map[string]string) ([]byte, error) {
	if w.Body == "" {
		m := newMessage(s)
		m.Text = escape(m.Text)
		body, err := marshal(m)
		if err == nil && len(body) > MaxBody {
			err = errTooLong
		}
		return body, err
	}
	t, err := parseBody(w.Body)
	if err != nil {
		return nil, err
	}
	all := newMessage(s).fields()
	if len(w.ValuesFrom) > 0 {
		secrets := fields{}
		for name := range w.ValuesFrom {
			if len(values[name]) > maxSecret {
				return nil, fmt.Errorf("the value of valuesFrom %s is longer than %d bytes: name another entry of the Secret", name, maxSecret)
			}
			secrets[name] = secret(values[name])
		}
		all["Values"] = secrets
	}
	text, err := t.execute(all)
	if err != nil {
		return nil, fmt.Errorf("rendering the body: %w", err)
	}
	return []byte(text), nil
}

// marshal writes JSON without escaping < and >.
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

// clip shortens a text to that many bytes, between characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const end = "…"
	return strings.ToValidUTF8(text[:most-len(end)], "") + end
}
