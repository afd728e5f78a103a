package hooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

var fromSecret = map[string]v1beta1.SecretKey{"k": {Name: "pager", Key: "key"}}

// TestValuesFromSecretsHaveNoOracle tries to learn a part of a value: its author may not read the
// Secret, but sees errors and the response's status.
func TestValuesFromSecretsHaveNoOracle(t *testing.T) {
	for _, template := range []string{
		`{{if .Values.k}}a{{end}}`,
		`{{with .Values.k}}{{.}}{{end}}`,
		`{{with .Values}}{{.k}}{{end}}`,
		`{{if .Values}}a{{end}}`,
		`{{if eq (printf "%.1s" .Values.k) "a"}}a{{end}}`,
		`{{eq .Values.k "a"}}`,
		`{{.Values.k | eq "a"}}`,
		`{{json .Values.k}}`,
		`{{json .Values}}`,
		`{{json .}}`,
		`{{printf "%v" .}}`,
		`{{print .Values}}`,
		`{{urlquery .Values.k}}`,
		`{{raw .Values.k}}`,
		`{{not .Values.k}}`,
		`{{and true .Values.k}}`,
		`{{if (or .Values.k)}}a{{end}}`,
	} {
		w := v1beta1.Webhook{URL: "https://x", Body: template, ValuesFrom: fromSecret}
		if got, err := hooks.Body(w, subject(), map[string]string{"k": "abc"}); err == nil || !strings.Contains(err.Error(), "can only be written, as {{.Values.NAME}}") {
			t.Errorf("%s: %s, %v", template, got, err)
		}
		if problems := hooks.CheckWebhook(w); len(problems) != 1 {
			t.Errorf("%s: the policy's check says %q", template, problems)
		}
	}
}

// TestErrorsDoNotDependOnSecrets renders bodies near the limit with different values.
func TestErrorsDoNotDependOnSecrets(t *testing.T) {
	s := subject()
	s.Message = strings.Repeat("\n", 500)
	values := []string{"", "a", `"`, `{"`, `\`, strings.Repeat(`"`, 4096)}
	for _, start := range []string{`{"k": "{{.Values.k}}"`, `{{.Values.k}}`, `{"k": {{.Values.k}}`} {
		accepted := 0
		for filler := 60_000; filler < 61_200; filler += 100 {
			body := start + `, "m": "` + strings.Repeat("x", filler) + `{{.Message}}"}`
			ok := 0
			for _, value := range values {
				if _, err := hooks.Body(v1beta1.Webhook{Body: body, ValuesFrom: fromSecret}, s, map[string]string{"k": value}); err == nil {
					ok++
				}
			}
			if ok != 0 && ok != len(values) {
				t.Errorf("%s and %d bytes: %d of %d values are accepted", start, filler, ok, len(values))
			}
			accepted += ok
		}
		if accepted == 0 || accepted == 12*len(values) {
			t.Errorf("%s: no body is at the limit: %d are accepted", start, accepted)
		}
	}
	_, err := hooks.Body(v1beta1.Webhook{Body: "{{.Values.k}}", ValuesFrom: fromSecret}, s, map[string]string{"k": strings.Repeat("x", 4097)})
	if err == nil || !strings.Contains(err.Error(), "longer than 4096 bytes") {
		t.Errorf("a long value: %v", err)
	}
}

func TestBodyWithoutSecretsHasNoValues(t *testing.T) {
	got, err := hooks.Body(v1beta1.Webhook{Body: "{{json .}}"}, subject(), nil)
	if err != nil || strings.Contains(string(got), "alues") {
		t.Errorf("%s, %v", got, err)
	}
}

// FuzzSecretsDecideNothing renders any template with two values: both succeed, or both fail in the
// same way.
func FuzzSecretsDecideNothing(f *testing.F) {
	f.Add(`{"k": "{{.Values.k}}", "n": {{json .Node}}}`, "a", `"`)
	f.Add(`{{if .Values.k}}a{{end}}{{print .Values.k}}{{json .}}`, "", "a")
	f.Add(`{{with and .Node .Values.k}}{{.}}{{end}}{{(.Values.k)}}`, `\`, `{"`)
	f.Fuzz(func(t *testing.T, text, one, other string) {
		if len(text) > 8192 {
			return
		}
		w := v1beta1.Webhook{Body: text, ValuesFrom: fromSecret}
		_, first := hooks.Body(w, subject(), map[string]string{"k": one[:min(len(one), 4096)]})
		_, second := hooks.Body(w, subject(), map[string]string{"k": other[:min(len(other), 4096)]})
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("%q: with one value %v, with another %v", text, first, second)
		}
	})
}
