package hooks_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// No text from outside puts a link, a mention, a tag or a control character into a body, or
// ends the JSON string that it is in. The templates use every way to write a field.
func TestFieldsCannotInjectMarkup(t *testing.T) {
	templates := []string{
		"", `{"text": {{json .Message}}}`, `{"text": "{{.Message}} {{.Node}}"}`, `{"text": {{printf "%s %v %q %x %d %#v" .Node .Message .Policy .Reason .Kind .Message | json}}}`,
		`{"text": "{{print .Message .Node}}"}`, `{"all": {{json .}}}`, `{"text": {{printf "%+v %#v" . . | json}}}`, `{"text": "{{with .Message}}{{.}}{{end}}"}`,
		`{"text": "{{or .Message .Node}}{{and .Message .Node}}", "url": "https://example.com/{{urlquery .Message}}"}`,
	}
	alphabet := []rune("ab<>&!|@\"\\\n\t\r\x00\x1b\u009b\u202e {}")
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			s := []string{"<!channel>", "<https://evil.example|ok>", "</script>", `","x":"`}[r.IntN(4)]
			for range r.IntN(12) {
				s += string(alphabet[r.IntN(len(alphabet))])
			}
			return s
		}
		s := subject()
		s.Node, s.Message, s.Policy, s.Reason, s.Kind, s.Interruption, s.InstanceID = text(), text(), text(), text(), text(), text(), text()
		for _, template := range templates {
			body, err := hooks.Body(v1beta1.Webhook{Body: template}, s, nil)
			if err != nil {
				t.Fatalf("seed %d: %q: %v", seed, template, err)
			}
			var read map[string]any
			if err := json.Unmarshal(body, &read); err != nil {
				t.Fatalf("seed %d: %q is not JSON: %v\n%s", seed, template, err, body)
			}
			if template == "" { // the other fields are data, not text for a chat
				body = []byte(read["text"].(string))
			}
			if template != "" && read["x"] != nil || strings.ContainsAny(string(body), "<>") || strings.ContainsFunc(string(body), isControl) {
				t.Fatalf("seed %d: %q gives %q", seed, template, body)
			}
		}
	}
}

func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf)
}
