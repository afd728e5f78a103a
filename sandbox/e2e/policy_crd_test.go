//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	lifeboatchart "github.com/lifeboat-dev/lifeboat/charts/lifeboat"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
)

const policyCRD = "crds/lifeboat.dev_interruptionpolicies.yaml"

// TestAPIServerValidatesPolicies uses only an API server with the CRD.
func TestAPIServerValidatesPolicies(t *testing.T) {
	t.Parallel()
	crd := object(t, read(t, policyCRD))
	c := serve(t, crd)
	t.Run("invalid specs are rejected with a remedy", func(t *testing.T) { rejectsInvalidPolicies(t, c, crd) })
	t.Run("schema errors are those of the guide", func(t *testing.T) { rejectsBySchema(t, c) })
	t.Run("examples of the guide are accepted", func(t *testing.T) { acceptsGuideExamples(t, c) })
}

// serve starts an API server with the policy CRD.
func serve(t *testing.T, crd *unstructured.Unstructured) client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // the programs may need a build
	defer cancel()
	paths, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := serveKinds(ctx, t, paths.Kubernetes, crd)
	r := &rig{t: t}
	r.until("the API server to serve policies", time.Minute, func(ctx context.Context) (bool, error) {
		err := create(ctx, c, "{rules: [{kinds: ['*'], action: Ignore}]}")
		return err == nil, err
	})
	return c
}

// serveKinds starts an API server, creates CRDs, and waits until they are established.
func serveKinds(ctx context.Context, t *testing.T, kubernetes string, crds ...*unstructured.Unstructured) client.Client {
	t.Helper()
	plane, err := controlplane.Start(ctx, controlplane.Options{Binary: kubernetes, Dir: filepath.Join(t.TempDir(), "cp")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Kill9)
	c, err := client.New(plane.RESTConfig(), client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if err := c.Create(ctx, crd.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// create validates a policy with a dry-run create.
func create(ctx context.Context, c client.Client, spec string) error {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		return fmt.Errorf("reading the test's spec: %w", err)
	}
	p := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lifeboat.dev/v1beta1", "kind": "InterruptionPolicy", "metadata": map[string]any{"name": "p"}, "spec": fields,
	}}
	return c.Create(ctx, p, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// refusals maps invalid specs to the path and message of the expected error.
func refusals() map[string][2]string {
	rule := func(more string) string { return "{rules: [{kinds: ['*'], action: Drain, " + more + "}]}" }
	ignore := func(more string) string { return "{rules: [{kinds: ['*'], action: Ignore, " + more + "}]}" }
	with := func(more string) string { return "{rules: [{kinds: ['*'], action: Drain}], " + more + "}" }
	hook := func(more string) string { return with("hooks: [{name: a, when: AfterDrain, " + more + "}]") }
	const (
		sense  = " only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
		moves  = " only makes sense with action Drain or Terminate; remove it, or change the action"
		cron   = `schedule "%s" is not five cron fields: write minute hour day-of-month month day-of-week, such as "0 2 * * *" for 02:00 every day`
		zone   = `time zone "%s" is not an IANA name: write UTC or one such as Europe/Berlin`
		limit  = "maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
		length = "duration must be between 1m and 168h, such as 2h"
		url    = "a webhook has either url or urlFrom: write one of the two"
		call   = `webhook: {url: "https://a.example.com"}`
		window = `window: {schedule: "0 2 * * *", duration: 2h}`
	)
	return map[string][2]string{
		ignore(window):               {"spec.rules[]", "window" + sense},
		ignore("notBefore: 24h"):     {"spec.rules[]", "notBefore" + sense},
		ignore("approval: Required"): {"spec.rules[]", "approval" + sense},
		ignore("strategy: Evict"):    {"spec.rules[]", "strategy" + moves},
		ignore("replacement: None"):  {"spec.rules[]", "replacement" + moves},
		ignore("drainTimeout: 30m"):  {"spec.rules[]", "drainTimeout" + moves},
		rule("drainTimeout: 30s"):    {"spec.rules[].drainTimeout", "drainTimeout must be between 1m and 48h, such as 30m"},
		rule("drainTimeout: 49h"):    {"spec.rules[].drainTimeout", "drainTimeout must be between 1m and 48h, such as 30m"},
		"{rules: [{kinds: [SpotInterruption], action: Drain, drainTimeout: 30m}]}": {"spec.rules[]", "drainTimeout is for drains that no deadline ends: of kind AutoScalingTermination, or with action Terminate; remove it, or add the kind"},
		rule("ifUnanswered: Wait"):                                                                  {"spec.rules[]", "ifUnanswered says what happens without an approval; write approval: Required as well, or remove it"},
		rule("approval: None, ifUnanswered: Proceed"):                                               {"spec.rules[]", "ifUnanswered says what happens without an approval; write approval: Required as well, or remove it"},
		"{rules: [{kinds: ['*'], action: Evacuate}]}":                                               {"spec.rules[].action", "unknown action Evacuate: write Ignore, Notify, Cordon, Drain or Terminate"},
		rule("approval: Maybe"):                                                                     {"spec.rules[].approval", "unknown approval Maybe: write Required or None"},
		rule("approval: Required, ifUnanswered: Ask"):                                               {"spec.rules[].ifUnanswered", "unknown ifUnanswered Ask: write Wait or Proceed"},
		rule("doNotDisrupt: Maybe"):                                                                 {"spec.rules[].doNotDisrupt", "unknown doNotDisrupt Maybe: write Respect, UntilLastCall or Ignore"},
		rule("strategy: Never"):                                                                     {"spec.rules[].strategy", "unknown strategy Never: write Evict or Surge; Never is for workloads"},
		rule("replacement: After"):                                                                  {"spec.rules[].replacement", "unknown replacement After: write Before or None"},
		rule("notBefore: 30s"):                                                                      {"spec.rules[].notBefore", "notBefore must be between 1m and 8760h, such as 24h"},
		rule("notBefore: 8761h"):                                                                    {"spec.rules[].notBefore", "notBefore must be between 1m and 8760h, such as 24h"},
		rule(`window: {schedule: at night, duration: 2h}`):                                          {"spec.rules[].window.schedule", fmt.Sprintf(cron, "at night")},
		rule(`window: {schedule: "@daily", duration: 2h}`):                                          {"spec.rules[].window.schedule", fmt.Sprintf(cron, "@daily")},
		rule(`window: {schedule: "0 2 * * *", duration: 1s}`):                                       {"spec.rules[].window.duration", length},
		rule(`window: {schedule: "0 2 * * *", duration: 169h}`):                                     {"spec.rules[].window.duration", length},
		rule(`window: {schedule: "0 2 * * *", duration: 2h, timeZone: "CET+1"}`):                    {"spec.rules[].window.timeZone", fmt.Sprintf(zone, "CET+1")},
		with("workloads: [{order: Last}]"):                                                          {"spec.workloads[]", "a workload has to say which pods it is for: write namespaces, selector or matchOwnerKinds"},
		with("workloads: [{namespaces: [a]}]"):                                                      {"spec.workloads[]", "a workload has to say what is different for its pods: write order or strategy"},
		with("workloads: [{namespaces: [a], order: Third}]"):                                        {"spec.workloads[].order", "unknown order Third: write First, Normal or Last"},
		with("workloads: [{namespaces: [a], strategy: Move}]"):                                      {"spec.workloads[].strategy", "unknown strategy Move: write Evict, Surge or Never"},
		with("budget: {maxConcurrent: 0}"):                                                          {"spec.budget.maxConcurrent", limit},
		with("budget: {maxConcurrent: '5'}"):                                                        {"spec.budget.maxConcurrent", limit},
		with("budget: {maxConcurrent: 101%}"):                                                       {"spec.budget.maxConcurrent", limit},
		with("waitForDeregistration: 500ms"):                                                        {"spec.waitForDeregistration", "waitForDeregistration must be between 1s and 1h, such as 1m"},
		with("waitForDeregistration: 61m"):                                                          {"spec.waitForDeregistration", "waitForDeregistration must be between 1s and 1h, such as 1m"},
		with("terminations: {maxConcurrent: 0%}"):                                                   {"spec.terminations.maxConcurrent", limit},
		with("hooks: [{name: a, when: Later, " + call + "}]"):                                       {"spec.hooks[].when", "unknown when Later: write BeforeDrain or AfterDrain"},
		hook(call + ", onFailure: Panic"):                                                           {"spec.hooks[].onFailure", "unknown onFailure Panic: write Continue or Hold"},
		hook(call + ", timeout: 25h"):                                                               {"spec.hooks[].timeout", "timeout must be between 1s and 24h, such as 60s"},
		hook(call + ", job: {template: {}}"):                                                        {"spec.hooks[]", "a hook is either a job or a webhook: write one of the two"},
		hook("retries: 1"):                                                                          {"spec.hooks[]", "a hook is either a job or a webhook: write one of the two"},
		hook("webhook: {body: a}"):                                                                  {"spec.hooks[].webhook", url},
		hook("webhook: {url: a.example.com}"):                                                       {"spec.hooks[].webhook.url", "url a.example.com has no scheme: write https:// (or http://) before it"},
		with("notifications: [{name: a, webhook: {}}]"):                                             {"spec.notifications[].webhook", url},
		with("notifications: [{name: a, webhook: {url: a.example.com}}]"):                           {"spec.notifications[].webhook.url", "url a.example.com has no scheme: write https:// (or http://) before it"},
		with(`notifications: [{name: a, webhook: {url: "https://a", urlFrom: {name: a, key: b}}}]`): {"spec.notifications[].webhook", url},
	}
}

// rejectsInvalidPolicies creates invalid specs, and checks that they cover every rule of the CRD.
func rejectsInvalidPolicies(t *testing.T, c client.Client, crd *unstructured.Unstructured) {
	met := map[string]bool{}
	for spec, want := range refusals() {
		err := create(t.Context(), c, spec)
		said := causes(err)
		if !slices.Contains(said, want) {
			t.Errorf("%s\nwant %q\ngot  %q (%v)", spec, want, said, err)
		}
		for _, cause := range said {
			met[cause[0]+": "+cause[1]] = true
		}
	}
	rules := rulesOf(crd)
	if len(rules) < 30 {
		t.Fatalf("only %d rules in the CRD", len(rules))
	}
	for where, pattern := range rules {
		if !slices.ContainsFunc(keys(met), regexp.MustCompile("^"+pattern+"$").MatchString) {
			t.Errorf("no spec in this test violates the rule of %s", where)
		}
	}
}

func keys(set map[string]bool) []string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	return all
}

var (
	place = regexp.MustCompile(`\[[^\]]*\]`)
	given = regexp.MustCompile(`(?s)^Invalid value: (("(\\.|[^"\\])*"|-?\d+): )?`)
)

// causes returns the paths and messages of a validation error.
func causes(err error) [][2]string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var all [][2]string
	for _, cause := range status.Status().Details.Causes {
		field := strings.TrimPrefix(cause.Field, "<nil>") // of a rule about the whole object
		all = append(all, [2]string{place.ReplaceAllString(field, "[]"), given.ReplaceAllString(cause.Message, "")})
	}
	return all
}

// rulesOf returns patterns for the messages of the CRD's rules, as "path: message".
func rulesOf(crd *unstructured.Unstructured) map[string]string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	schema, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
	found := map[string]string{}
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		rules, _ := schema["x-kubernetes-validations"].([]any)
		for _, r := range rules {
			message, ok := r.(map[string]any)["message"].(string)
			pattern := regexp.QuoteMeta(message)
			if !ok {
				message = fmt.Sprint(r.(map[string]any)["messageExpression"])
				pattern = strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(message, "'")), regexp.QuoteMeta("' + self + '"), ".*")
			}
			found[path+": "+message] = regexp.QuoteMeta(path) + ": " + pattern
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			walk(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any))
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
	}
	walk("", schema)
	return found
}

// rejectsBySchema creates specs with wrong types or values out of bounds. The guide lists these
// messages in its first table.
func rejectsBySchema(t *testing.T, c client.Client) {
	many := strings.Repeat("{kinds: ['*'], action: Drain},", 33)
	long := strings.Repeat("a", 64)
	with := func(more string) string { return "{rules: [{kinds: ['*'], action: Drain}], " + more + "}" }
	guide := guide(t)
	for spec, want := range map[string][2]string{ // path and message
		"{}":                        {"spec.rules:", "Required value"},
		"{rules: [{}]}":             {"spec.rules[0].kinds:", "Required value"},
		"{rules: [{kinds: ['*']}]}": {"spec.rules[0].action:", "some validation rules were not checked because the object was invalid"},
		"{rules: []}":               {"spec.rules:", "should have at least 1 items"},
		"{rules: [" + many + "]}":   {"spec.rules:", "Too many"},
		"{rules: [{kinds: ['*', '*'], action: Drain}]}":                  {"spec.rules[0].kinds[1]:", "Duplicate value"},
		"{rules: [{name: " + long + ", kinds: ['*'], action: Drain}]}":   {"spec.rules[0].name:", "Too long: may not be more than"},
		"{rules: [{kinds: ['*'], action: Drain, eventTypeCodes: ['']}]}": {"spec.rules[0].eventTypeCodes[0]:", "in body should be at least 1 chars long"},
		"{rules: [{kinds: ['*'], action: Drain, notBefore: 3d}]}":        {"spec.rules[0].notBefore:", "type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule"},
		"{rules: [{kinds: ['*'], action: Drain, actoin: Drain}]}":        {"spec.rules[0].actoin", `unknown field "spec.`},
		with("priority: high"): {"spec.priority:", "in body must be of type"},
		with("hooks: [{name: A, when: AfterDrain, webhook: {url: 'https://a'}}]"):                               {"spec.hooks[0].name:", "in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"},
		with("hooks: [{name: a, when: AfterDrain, retries: 11, webhook: {url: 'https://a'}}]"):                  {"spec.hooks[0].retries:", "in body should be less than or equal to 10"},
		with("hooks: [{name: a, when: AfterDrain, retries: -1, webhook: {url: 'https://a'}}]"):                  {"spec.hooks[0].retries:", "greater than or equal to 0"},
		with("notifications: [{name: a, webhook: {url: 'https://a'}}, {name: a, webhook: {url: 'https://b'}}]"): {"spec.notifications[1]:", "Duplicate value"},
	} {
		err := create(t.Context(), c, spec)
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%.100s\nwant %q\ngot  %v", spec, want, err)
		}
		if !strings.Contains(guide, want[1]) {
			t.Errorf("docs/guides/policy.md does not have %q", want[1])
		}
	}
}

// acceptsGuideExamples creates every policy example of the guides.
func acceptsGuideExamples(t *testing.T, c client.Client) {
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllStringSubmatch(guide(t), -1)
	if len(blocks) < 8 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, block := range blocks {
		for document := range strings.SplitSeq(block[1], "\n---\n") {
			p := object(t, []byte(document))
			if err := c.Create(t.Context(), p, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Errorf("%v:\n%s", err, document)
			}
		}
	}
}

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := lifeboatchart.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func object(t *testing.T, text []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
