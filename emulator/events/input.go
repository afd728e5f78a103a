package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Limits of input transformers (EventBridge API Reference, InputTransformer).
const (
	maxVariables = 100
	maxTemplate  = 8192
)

// Transformer builds a target's input from parts of the event.
type Transformer struct {
	// Paths maps variables to JSON paths in the event.
	Paths map[string]string
	// Template is the text to send, in which <name> is a variable.
	Template string
}

var variable = regexp.MustCompile(`<[^<>\s"]+>`)

func (t *Transformer) check(id string) error {
	switch {
	case t.Template == "" || len(t.Template) > maxTemplate:
		return notValid("InputTemplate", "it must be 1 to 8192 characters long for target "+id)
	case len(t.Paths) > maxVariables:
		return notValid("InputPathsMap", "it has more than 100 entries for target "+id)
	}
	for name, path := range t.Paths {
		if strings.HasPrefix(name, "aws.") {
			return notValid("InputPathsMap", "variables must not begin with 'aws.': "+name)
		}
		if _, err := parsePath(path); err != nil {
			return notValid("InputPathsMap", err.Error())
		}
	}
	for _, name := range variable.FindAllString(t.Template, -1) {
		name = strings.Trim(name, "<>")
		if _, ok := t.Paths[name]; !ok && !strings.HasPrefix(name, "aws.events.") {
			return validation("Invalid InputTemplate for target %s : [Variable <%s> is not in InputPathsMap]", id, name)
		}
	}
	return nil
}

func checkInputJSON(t Target) error {
	if t.Input != "" && !json.Valid([]byte(t.Input)) {
		return notValid("Input", "JSON syntax error in input for target "+t.ID)
	}
	return nil
}

// body is the target's input for an event.
func (t Target) body(event []byte, ruleARN, ruleName string, ingested time.Time) (string, error) {
	switch {
	case t.Input != "":
		return t.Input, nil
	case t.InputPath != "":
		value, ok := lookUp(event, t.InputPath)
		if !ok {
			return "", fmt.Errorf("the event has nothing at %s", t.InputPath)
		}
		return string(value), nil
	case t.Transformer != nil:
		return t.Transformer.fill(event, map[string]any{
			"aws.events.rule-arn":             ruleARN,
			"aws.events.rule-name":            ruleName,
			"aws.events.event.ingestion-time": ingested.UTC().Format("2006-01-02T15:04:05Z"),
			"aws.events.event":                withoutDetail(event),
			"aws.events.event.json":           json.RawMessage(event),
		}), nil
	default:
		return string(event), nil
	}
}

// fill puts values into the template. Within a JSON string a text value is inserted unquoted and
// unescaped; elsewhere values are inserted as JSON. A variable whose path is missing in the event
// becomes empty (EventBridge User Guide, Input transformation).
func (t *Transformer) fill(event []byte, reserved map[string]any) string {
	var out strings.Builder
	last, quoted := 0, false
	for _, at := range variable.FindAllStringIndex(t.Template, -1) {
		before := t.Template[last:at[0]]
		quoted = quoted != oddQuotes(before)
		out.WriteString(before)
		out.WriteString(t.value(t.Template[at[0]+1:at[1]-1], event, reserved, quoted))
		last = at[1]
	}
	out.WriteString(t.Template[last:])
	return out.String()
}

func (t *Transformer) value(name string, event []byte, reserved map[string]any, quoted bool) string {
	raw, ok := lookUp(event, t.Paths[name])
	if v, is := reserved[name]; is {
		raw, ok = Detail(v), true
	}
	var text string
	switch {
	case !ok && quoted:
		return ""
	case !ok:
		return `""`
	case quoted && json.Unmarshal(raw, &text) == nil:
		return text
	default:
		return string(raw)
	}
}

// withoutDetail is the value of <aws.events.event>.
func withoutDetail(event []byte) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(event, &fields) != nil {
		return event
	}
	delete(fields, "detail")
	return Detail(fields)
}

// oddQuotes reports whether text starts or ends a JSON string.
func oddQuotes(text string) bool {
	odd := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			odd = !odd
		}
	}
	return odd
}

// step is one part of a path: a key, or an index if it is not negative.
type step struct {
	key   string
	index int
}

var pathStep = regexp.MustCompile(`^(?:\.([A-Za-z0-9_\-]+)|\['([^']+)'\]|\[([0-9]{1,6})\])`)

// parsePath reads the JSON paths that EventBridge takes: $ followed by .name, ['name']
// and [index].
func parsePath(path string) ([]step, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, fmt.Errorf("the path %s does not begin with $", path)
	}
	var steps []step
	for rest != "" {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("the path %s cannot be read at %q; use .name, ['name'] and [0]", path, rest)
		}
		rest = rest[len(m[0]):]
		if m[3] != "" {
			n, err := strconv.Atoi(m[3])
			if err != nil {
				return nil, fmt.Errorf("the path %s has a bad index: %w", path, err)
			}
			steps = append(steps, step{index: n})
			continue
		}
		steps = append(steps, step{key: m[1] + m[2], index: -1})
	}
	return steps, nil
}

// lookUp finds what is at a path, as compact JSON.
func lookUp(event []byte, path string) (json.RawMessage, bool) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, false
	}
	at := json.RawMessage(event)
	for _, st := range steps {
		if at = st.from(at); at == nil {
			return nil, false
		}
	}
	var b bytes.Buffer
	if err := json.Compact(&b, at); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// from takes one step of a path; nil: it does not exist.
func (s step) from(value json.RawMessage) json.RawMessage {
	if s.index < 0 {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return nil
		}
		return object[s.key]
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil || s.index >= len(list) {
		return nil
	}
	return list[s.index]
}
