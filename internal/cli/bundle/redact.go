package bundle

import (
	"bytes"
	"net/url"
	"strings"
)

// removed stands for what was removed.
const removed = "REMOVED"

// lastApplied is where kubectl repeats the whole object, with its URLs.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// redactor removes what can be a credential.
type redactor struct{ urls []string }

// clean changes decoded JSON: the path and query of each url, the headers and the body of
// webhooks, the values of environment variables, and fields that repeat the object.
func (r *redactor) clean(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			r.clean(item)
		}
	case map[string]any:
		delete(v, "managedFields")
		for key, field := range v {
			switch text, isText := field.(string); {
			case key == lastApplied:
				v[key] = removed
			case isText && strings.EqualFold(key, "url"):
				v[key] = r.url(text)
			case key == "headers", key == "body": // the body for PagerDuty has the key
				v[key] = removed
			case key == "env":
				cleanEnv(field)
			default:
				r.clean(field)
			}
		}
	}
}

// url keeps the scheme and the host: tokens are in paths, queries and user names.
func (r *redactor) url(text string) string {
	r.urls = append(r.urls, text)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return removed
	}
	return u.Scheme + "://" + u.Host + "/" + removed
}

// cleanEnv removes the values of environment variables. References to Secrets are names.
func cleanEnv(field any) {
	all, _ := field.([]any)
	for _, item := range all {
		if variable, ok := item.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = removed
		}
	}
}

// text removes the URLs that were found in objects.
func (r *redactor) text(text []byte) []byte {
	for _, u := range r.urls {
		if u != "" {
			text = bytes.ReplaceAll(text, []byte(u), []byte(removed))
		}
	}
	return text
}
