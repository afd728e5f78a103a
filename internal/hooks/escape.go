package hooks

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// outside is text that the policy's author did not write: a name, a message, a notice. It is
// escaped wherever a template writes it. Only the function raw returns it as it is.
type outside string

// String returns the text as markup shows it.
func (o outside) String() string { return escape(string(o)) }

// MarshalJSON writes the escaped text.
func (o outside) MarshalJSON() ([]byte, error) { return marshal(o.String()) }

// verbatim is JSON. It is written as it is, also inside of a JSON string.
type verbatim string

// secret is a value from a Secret. A template can only write it. A function or a condition could
// tell the policy's author, who may not read the Secret, parts of it: by the response's status
// or by an error.
type secret string

// maxSecret is the largest value of valuesFrom, in bytes.
const maxSecret = 4 << 10

var errSecret = errors.New("a value of valuesFrom can only be written, as {{.Values.NAME}}: no function and no condition may use it")

// rejectSecrets returns an error if one of the values is a secret or contains one.
func rejectSecrets(values ...any) error {
	for _, v := range values {
		switch v := v.(type) {
		case secret:
			return errSecret
		case fields:
			if err := rejectSecrets(slices.Collect(maps.Values(v))...); err != nil {
				return err
			}
		}
	}
	return nil
}

// markup are the characters that begin links and mentions in Slack (Slack documentation,
// "Formatting text for app surfaces") and tags in HTML. Unescaped, a text such as <!channel>
// notifies everyone.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape removes control and formatting characters, except line breaks and tabs, and
// escapes markup.
func escape(text string) string {
	return markup.Replace(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�")))
}

// escaped returns the arguments of a function, with text from outside escaped.
func escaped(args []any) []any {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = safeValue(arg)
	}
	return safe
}

func safeValue(v any) any {
	switch v := v.(type) {
	case outside:
		return v.String()
	case fields:
		safe := fields{}
		for name, inner := range v {
			safe[name] = safeValue(inner)
		}
		return safe
	}
	return v
}

// plain returns text as a string without escaping, and any other value as it is.
func plain(v any) any {
	switch v := v.(type) {
	case outside:
		return string(v)
	case verbatim:
		return string(v)
	}
	return v
}

// jsonState tells whether the body so far is JSON and ends inside of a string.
type jsonState struct{ begun, is, inString, backslash bool }

// next reads the next part of the body.
func (j *jsonState) next(text string) {
	for _, r := range text {
		switch {
		case !j.begun && !unicode.IsSpace(r):
			j.begun, j.is = true, r == '{' || r == '['
		case !j.inString:
			j.inString = j.is && r == '"'
		case j.backslash:
			j.backslash = false
		case r == '\\':
			j.backslash = true
		case r == '"':
			j.inString = false
		}
	}
}

// quoted returns text as the content of a JSON string.
func quoted(text string) string {
	out, err := marshal(text)
	if err != nil { // strings always marshal
		return ""
	}
	return string(out[1 : len(out)-1])
}
