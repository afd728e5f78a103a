package hooks

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// minTTL is the least time in seconds that a finished Job must be kept, so
// that the controller can read its result.
const minTTL = 60

// Check returns the problems of a hook, each with what to write instead; none
// if it can run. It repeats the CRD's own rules for policies that were stored
// before those rules existed.
func Check(h v1beta1.Hook) []string {
	var problems []string
	if h.When != v1beta1.HookBeforeDrain && h.When != v1beta1.HookAfterDrain {
		problems = append(problems, fmt.Sprintf("unknown when %q: write BeforeDrain or AfterDrain", h.When))
	}
	if !slices.Contains([]v1beta1.HookFailure{"", v1beta1.HookContinue, v1beta1.HookHold}, h.OnFailure) {
		problems = append(problems, fmt.Sprintf("unknown onFailure %q: write Continue or Hold", h.OnFailure))
	}
	if t := Timeout(h); t < time.Second || t > 24*time.Hour {
		problems = append(problems, fmt.Sprintf("timeout %s is not between 1s and 24h: write one such as 60s", t))
	}
	if (h.Job != nil) == (h.Webhook != nil) {
		return append(problems, "a hook is either a job or a webhook: write one of the two")
	}
	if h.Webhook != nil {
		return append(problems, prefixed(CheckWebhook(*h.Webhook), "webhook.")...)
	}
	return append(problems, prefixed(checkJob(*h.Job), "job.template: ")...)
}

// prefixed prefixes each problem with its location.
func prefixed(problems []string, where string) []string {
	for i := range problems {
		problems[i] = where + problems[i]
	}
	return problems
}

func checkJob(j v1beta1.HookJob) []string {
	template, err := decode(j.Template.Raw)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	pod := &template.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		problems = append(problems, "the template has no containers: write at least one under spec.template.spec.containers")
	}
	for i, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if c.Name == "" || c.Image == "" {
			problems = append(problems, fmt.Sprintf("container %d has no name or no image: write both", i+1))
		}
	}
	problems = append(problems, checkIdentity(template)...)
	if pod.RestartPolicy == corev1.RestartPolicyAlways {
		problems = append(problems, "Jobs do not allow restartPolicy Always: write Never or OnFailure, or remove it")
	}
	if suspend := template.Spec.Suspend; suspend != nil && *suspend {
		problems = append(problems, "suspend: true prevents the Job from running: remove it")
	}
	if kept := template.Spec.TTLSecondsAfterFinished; kept != nil && *kept < minTTL {
		problems = append(problems, fmt.Sprintf("ttlSecondsAfterFinished %d is too short for Lifeboat to read the Job's result: write at least %d, or remove it", *kept, minTTL))
	}
	return problems
}

// reservedLabels is the prefix of the labels by which the chart's selectors find
// Lifeboat's own pods. A Job's pod among them would stop their
// PodDisruptionBudget from working: a Job has no scale subresource.
const reservedLabels = "app.kubernetes.io/"

// checkIdentity returns what would let the Job's pod pass for one of Lifeboat's.
func checkIdentity(template *batchv1.JobTemplateSpec) []string {
	var problems []string
	if account := ownAccount(&template.Spec.Template.Spec); account != "" {
		problems = append(problems, explainAccount(account))
	}
	for _, labels := range []map[string]string{template.Labels, template.Spec.Template.Labels} {
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			if strings.HasPrefix(name, reservedLabels) {
				problems = append(problems, fmt.Sprintf("the label %s is reserved for the programs of the cluster: write a label with another prefix", name))
			}
		}
	}
	return problems
}

// ownAccount returns the chart's ServiceAccount that a pod would run as, or "".
// The API server copies the deprecated field serviceAccount to
// serviceAccountName if that is empty.
func ownAccount(pod *corev1.PodSpec) string {
	own := []string{"lifeboat-controller", "lifeboat-agent"}
	for _, account := range []string{pod.ServiceAccountName, pod.DeprecatedServiceAccount} {
		if slices.Contains(own, account) {
			return account
		}
	}
	return ""
}

func explainAccount(account string) string {
	return fmt.Sprintf("its Job may not run as Lifeboat's own ServiceAccount %s: write another serviceAccountName", account)
}

// CheckWebhook returns the problems of a webhook. Each begins with the name of
// a field. URLs are not repeated: they may be secrets.
func CheckWebhook(w v1beta1.Webhook) []string {
	var problems []string
	switch {
	case (w.URL != "") == (w.URLFrom != nil):
		problems = append(problems, "url: a webhook has either url or urlFrom: write one of the two")
	case w.URLFrom != nil && (w.URLFrom.Name == "" || w.URLFrom.Key == ""):
		problems = append(problems, "urlFrom: both name and key are required: write the name of a Secret in Lifeboat's namespace and the key of the entry in it")
	case w.URL != "":
		if _, err := ParseURL(w.URL); err != nil {
			problems = append(problems, "url: "+err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		problems = append(problems, checkHeader(name, w.Headers[name])...)
	}
	problems = append(problems, checkHeadersFrom(w)...)
	problems = append(problems, checkValuesFrom(w)...)
	if _, err := Body(w, sample(), nil); err != nil {
		problems = append(problems, "body: "+err.Error())
	}
	return problems
}

// valueName is a name that a template can use as a field.
var valueName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,62}$`)

func checkValuesFrom(w v1beta1.Webhook) []string {
	var problems []string
	if len(w.ValuesFrom) > 0 && w.Body == "" {
		problems = append(problems, "valuesFrom: only a body of your own contains the values: write body, or remove valuesFrom")
	}
	for _, name := range slices.Sorted(maps.Keys(w.ValuesFrom)) {
		if !valueName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("valuesFrom: %q cannot be used as .Values.NAME: write letters and digits, such as routingKey", name))
		}
		if from := w.ValuesFrom[name]; from.Name == "" || from.Key == "" {
			problems = append(problems, fmt.Sprintf("valuesFrom: %s needs both name and key: write the name of a Secret in Lifeboat's namespace and the key of the entry in it", name))
		}
	}
	return problems
}

func checkHeadersFrom(w v1beta1.Webhook) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(w.HeadersFrom)) {
		for _, problem := range checkHeader(name, "") {
			problems = append(problems, "headersFrom"+strings.TrimPrefix(problem, "headers"))
		}
		if from := w.HeadersFrom[name]; from.Name == "" || from.Key == "" {
			problems = append(problems, fmt.Sprintf("headersFrom: %s needs both name and key: write the name of a Secret in Lifeboat's namespace and the key of the entry in it", name))
		}
		for other := range w.Headers {
			if strings.EqualFold(other, name) {
				problems = append(problems, fmt.Sprintf("headersFrom: %s is in headers too: remove one of the two", name))
			}
		}
	}
	return problems
}

func checkHeader(name, value string) []string {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return []string{fmt.Sprintf("headers: %q is not a header name: write letters, digits and hyphens, such as X-Team", name)}
	}
	if slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection"}, strings.ToLower(name)) {
		return []string{fmt.Sprintf("headers: %s is set from the request: remove it", name)}
	}
	if err := CheckHeaderValue(value); err != nil {
		return []string{fmt.Sprintf("headers: the value of %s %s", name, err)}
	}
	return nil
}

// CheckHeaderValue returns an error that does not repeat the value.
func CheckHeaderValue(value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("contains a line break or another control character: remove it")
	}
	return nil
}

// notToken reports whether a header name may not contain r (RFC 9110, 5.6.2).
func notToken(r rune) bool {
	isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !isLetter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// ParseURL parses a webhook URL. Its errors do not repeat the URL.
func ParseURL(text string) (*url.URL, error) {
	const write = "write one such as https://hooks.example.com/lifeboat"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL is not valid: %s", write)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the URL has no supported scheme: begin it with https:// (or http://)")
	case u.Hostname() == "":
		return nil, fmt.Errorf("the URL has no host: %s", write)
	}
	return u, nil
}

// sample is a subject with every field set, for checking templates.
func sample() Subject {
	deadline := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	return Subject{
		Interruption: "i-0123456789abcdef0", UID: "6f1c2a52-0000-4000-8000-000000000000",
		Node: "ip-10-0-1-2.ec2.internal", InstanceID: "i-0123456789abcdef0", Kind: "SpotInterruption", Policy: "sample",
		Phase: v1beta1.PhaseDraining, Reason: v1beta1.ReasonCordoned, Message: "the node is cordoned",
		Deadline: &deadline, Pods: v1beta1.PodCounts{Total: 12, Moved: 4, Leaving: 3, Waiting: 5},
	}
}
