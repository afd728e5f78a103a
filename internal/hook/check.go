package hook

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// seenFor is for how long an ended Job has to be there at least, in seconds, so
// that nobody misses how it ended.
const seenFor = 60

// Check returns what is wrong with a hook, each problem a sentence that says
// what to write; none if it can be run. It finds what the CRD's own rules
// cannot see, and what they do see again, for policies that were stored before
// there were any.
func Check(h v1alpha1.Hook) []string {
	var problems []string
	if h.When != v1alpha1.HookBeforeDrain && h.When != v1alpha1.HookAfterDrain {
		problems = append(problems, fmt.Sprintf("unknown when %q: write BeforeDrain or AfterDrain", h.When))
	}
	if !slices.Contains([]v1alpha1.HookFailure{"", v1alpha1.HookContinue, v1alpha1.HookHold}, h.OnFailure) {
		problems = append(problems, fmt.Sprintf("unknown onFailure %q: write Continue or Hold", h.OnFailure))
	}
	if t := Timeout(h); t < time.Second || t > 24*time.Hour {
		problems = append(problems, fmt.Sprintf("timeout %s is not between 1s and 24h: write one such as 60s", t))
	}
	if (h.Job != nil) == (h.Webhook != nil) {
		return append(problems, "it has to be either a job or a webhook: write one of the two")
	}
	if h.Webhook != nil {
		return append(problems, placed(CheckWebhook(*h.Webhook), "webhook.")...)
	}
	return append(problems, placed(checkJob(*h.Job), "job.template: ")...)
}

// placed puts before each problem where it is.
func placed(problems []string, where string) []string {
	for i := range problems {
		problems[i] = where + problems[i]
	}
	return problems
}

func checkJob(j v1alpha1.HookJob) []string {
	template, err := decode(j.Template.Raw)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	pod := &template.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		problems = append(problems, "it has no containers: write at least one under spec.template.spec.containers")
	}
	for i, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if c.Name == "" || c.Image == "" {
			problems = append(problems, fmt.Sprintf("container %d has no name or no image: write both", i+1))
		}
	}
	if pod.RestartPolicy == corev1.RestartPolicyAlways {
		problems = append(problems, "restartPolicy Always is not for Jobs: write Never or OnFailure, or remove it")
	}
	if suspend := template.Spec.Suspend; suspend != nil && *suspend {
		problems = append(problems, "suspend: true keeps it from running: remove it")
	}
	if kept := template.Spec.TTLSecondsAfterFinished; kept != nil && *kept < seenFor {
		problems = append(problems, fmt.Sprintf("ttlSecondsAfterFinished %d is too short for Lifeboat to see how it ended: write at least %d, or remove it", *kept, seenFor))
	}
	return problems
}

// CheckWebhook returns what is wrong with a webhook, as Check does. Each begins
// with the name of a field. URLs are not repeated: they may be secrets.
func CheckWebhook(w v1alpha1.Webhook) []string {
	var problems []string
	switch {
	case (w.URL != "") == (w.URLFrom != nil):
		problems = append(problems, "url: it has to have either url or urlFrom: write one of the two")
	case w.URLFrom != nil && (w.URLFrom.Name == "" || w.URLFrom.Key == ""):
		problems = append(problems, "urlFrom: it has to have both name and key: write the name of a Secret in Lifeboat's namespace and the key of the entry in it")
	case w.URL != "":
		if _, err := ParseURL(w.URL); err != nil {
			problems = append(problems, "url: "+err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		problems = append(problems, checkHeader(name, w.Headers[name])...)
	}
	if _, err := Body(w, sample()); err != nil {
		problems = append(problems, "body: "+err.Error())
	}
	return problems
}

func checkHeader(name, value string) []string {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return []string{fmt.Sprintf("headers: %q is no name of a header: write letters, digits and hyphens, such as X-Team", name)}
	}
	if slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection"}, strings.ToLower(name)) {
		return []string{fmt.Sprintf("headers: %s is made from the request itself: remove it", name)}
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return []string{fmt.Sprintf("headers: the value of %s has a line break or another control character in it: remove it", name)}
	}
	return nil
}

// notToken tells what a header's name may not have in it (RFC 9110, 5.6.2).
func notToken(r rune) bool {
	isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !isLetter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// ParseURL reads where a webhook goes. Its errors do not repeat the URL.
func ParseURL(text string) (*url.URL, error) {
	const write = "write one such as https://hooks.example.com/lifeboat"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is no URL: %s", write)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("it has no scheme that is known: write https:// (or http://) before it")
	case u.Hostname() == "":
		return nil, fmt.Errorf("it has no host: %s", write)
	}
	return u, nil
}

// sample is a subject to try templates on, with every field set.
func sample() Subject {
	deadline := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	return Subject{
		Interruption: "i-0123456789abcdef0", UID: "6f1c2a52-0000-4000-8000-000000000000",
		Node: "ip-10-0-1-2.ec2.internal", InstanceID: "i-0123456789abcdef0", Kind: "SpotInterruption", Policy: "sample",
		Phase: v1alpha1.PhaseDraining, Reason: v1alpha1.ReasonCordoned, Message: "the node is cordoned",
		Deadline: &deadline, Pods: v1alpha1.PodCounts{Total: 12, Moved: 4, Leaving: 3, Waiting: 5},
	}
}
