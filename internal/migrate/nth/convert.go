package nth

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Convert converts the handler's settings to a policy. If Lifeboat's defaults cover
// all settings, the output is empty. The error names the file that has no setting of
// the handler. files must not be empty.
func Convert(files []migrate.File) (*migrate.Result, error) {
	s, err := read(files)
	if err != nil {
		return nil, err
	}
	c := &converter{settings: s, result: &migrate.Result{Converted: len(files)}, file: files[0].Name}
	for _, flag := range slices.Sorted(maps.Keys(s)) {
		c.reportFlag(flag)
	}
	spec := c.policy()
	spec.Nodes.MatchLabels = c.nodeLabels()
	if len(spec.Rules) == 0 {
		c.report("", finding.Info, "no-policy", "Lifeboat's defaults cover all settings: no policy is needed.", "")
		return c.result, nil
	}
	if c.result.Output, err = manifest(spec); err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return c.result, nil
}

// manifest encodes a policy, without empty fields.
func manifest(spec v1beta1.InterruptionPolicySpec) ([]byte, error) {
	var document struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       map[string]any    `json:"spec"`
	}
	document.APIVersion, document.Kind, document.Metadata = v1beta1.GroupVersion.String(), "InterruptionPolicy", map[string]string{"name": "from-nth"}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &document.Spec)
	}
	if err != nil {
		return nil, err
	}
	if nodes, ok := document.Spec["nodes"].(map[string]any); ok && len(nodes) == 0 {
		delete(document.Spec, "nodes") // the default: all nodes
	}
	return yaml.Marshal(document)
}

// converter is the state of one conversion.
type converter struct {
	settings

	result *migrate.Result
	// file is the file for findings about flags that are not set.
	file string
}

// report adds a finding about a flag.
func (c *converter) report(flag string, severity finding.Severity, id, problem, fix string) {
	f := migrate.Finding{Finding: finding.Finding{Severity: severity, ID: id, Object: "flag " + flag, Problem: problem, Fix: fix}}
	if flag == "" {
		f.Object = "AWS Node Termination Handler"
	}
	f.File, f.Line = c.file, 1
	if at, set := c.settings[flag]; set {
		f.File, f.Line = at.file, at.line
	}
	c.result.Findings = append(c.result.Findings, f)
}

// reportFlag reports the conversion of a flag, unless it has its default value or the
// policy covers it.
func (c *converter) reportFlag(flag string) {
	a, _ := findConversion(flag)
	if a.problem == "" || c.settings[flag].value == a.usual {
		return
	}
	if flag == terminations && (c.on("cordon-only") || c.switchedOff(terminations)) {
		return // the policy has a rule for it
	}
	c.report(flag, a.severity, "flag", a.problem, a.fix)
}

// policy converts the settings.
func (c *converter) policy() v1beta1.InterruptionPolicySpec {
	var spec v1beta1.InterruptionPolicySpec
	switch {
	case c.on("dry-run"):
		c.report("dry-run", finding.Warning, "dry-run", "The policy makes Lifeboat ignore all interruptions, which corresponds to NTH's dry run. Lifeboat still records Interruptions.", "delete the policy when Lifeboat should act")
		spec.Rules = []v1beta1.Rule{{Name: "dry-run", Kinds: []string{"*"}, Action: v1beta1.ActionIgnore}}
	case c.on("cordon-only"):
		spec.Rules = c.cordonRules()
	default:
		spec.Rules = c.rules()
	}
	if webhook := c.webhook(); webhook != nil {
		spec.Notifications = []v1beta1.Notification{{Name: "from-nth", Reasons: []string{v1beta1.ReasonDrained, v1beta1.ReasonPodLost}, Webhook: *webhook}}
		if len(spec.Rules) == 0 { // a policy needs at least one rule; this is the default
			spec.Rules = []v1beta1.Rule{{Name: "spot", Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain, Replacement: v1beta1.ReplacementBefore}}
		}
	}
	return spec
}

func (c *converter) rules() []v1beta1.Rule {
	var rules []v1beta1.Rule
	add := func(name, kind string, action v1beta1.Action) {
		rules = append(rules, v1beta1.Rule{Name: name, Kinds: []string{kind}, Action: action})
	}
	if c.switchedOff("enable-spot-interruption-draining") {
		add("spot", notice.KindSpotInterruption, v1beta1.ActionIgnore)
	}
	if c.switchedOff("enable-scheduled-event-draining") {
		add("scheduled", notice.KindScheduledChange, v1beta1.ActionIgnore)
	} else {
		c.report("enable-scheduled-event-draining", finding.Warning, "scheduled", "For a scheduled event NTH drains immediately, even weeks before; Lifeboat drains an hour before.", "to drain earlier, set notBefore in a rule for ScheduledChange")
	}
	switch {
	case c.queue() && !c.on("enable-rebalance-draining"):
		c.report("enable-rebalance-draining", finding.Warning, "rebalance", "In queue mode NTH drains for every rebalance recommendation in its queue, regardless of its flags. With the policy Lifeboat only taints the node, which is the default.",
			"if NTH's queue received rebalance recommendations, add a rule for RebalanceRecommendation with action: Drain")
	case c.on("enable-rebalance-draining"):
		add("rebalance", notice.KindRebalanceRecommendation, v1beta1.ActionDrain)
	case c.on("enable-rebalance-monitoring"):
		add("rebalance", notice.KindRebalanceRecommendation, v1beta1.ActionCordon)
	}
	if c.switchedOff(terminations) {
		add("terminations", notice.KindAutoScalingTermination, v1beta1.ActionIgnore)
		return rules
	}
	if timeout, ok := c.drainTimeout(); ok {
		rules = append(rules, v1beta1.Rule{
			Name: "terminations", Kinds: []string{notice.KindAutoScalingTermination}, Action: v1beta1.ActionDrain, DrainTimeout: &metav1.Duration{Duration: timeout},
		})
	}
	return rules
}

// Limits of a rule's drainTimeout.
const (
	minDrainTimeout = time.Minute
	maxDrainTimeout = 48 * time.Hour
)

// drainTimeout returns how long a termination is extended.
func (c *converter) drainTimeout() (time.Duration, bool) {
	value := c.settings["heartbeat-until"].value
	seconds, err := strconv.Atoi(value)
	switch {
	case value == "", err == nil && seconds < 0:
		return 0, false
	case err != nil:
		c.report("heartbeat-until", finding.Broken, "flag", fmt.Sprintf("%q is not a number of seconds.", value), "set drainTimeout in a rule for AutoScalingTermination")
		return 0, false
	}
	return min(max(time.Duration(seconds)*time.Second, minDrainTimeout), maxDrainTimeout), true
}

// slackBody corresponds to the handler's default template.
const slackBody = `{"text": {{printf "%s (%s): %s" .Node .Kind .Message | json}}}`

// webhook returns the webhook, or nil.
func (c *converter) webhook() *v1beta1.Webhook {
	w := v1beta1.Webhook{Body: slackBody}
	url, secret := c.settings["webhook-url"], c.settings["webhook-url-secret-name"].value
	switch {
	case url.secret != "":
		w.URLFrom = &v1beta1.SecretKey{Name: url.secret, Key: url.key}
	case secret != "":
		w.URLFrom = &v1beta1.SecretKey{Name: secret, Key: "webhookurl"}
	case url.value != "":
		w.URL = url.value
		c.report("webhook-url", finding.Warning, "webhook", "The policy contains the URL, so everyone who can read policies can read it.", "store the URL in a Secret in lifeboat-system, add the Secret to webhooks.secrets of the chart, and use urlFrom")
	default:
		return nil
	}
	if w.URLFrom != nil {
		c.report("webhook-url", finding.Warning, "webhook", fmt.Sprintf("The policy reads the URL from the Secret %s, which must be in Lifeboat's namespace.", w.URLFrom.Name),
			"copy it to lifeboat-system, and add it to webhooks.secrets of the chart")
	}
	if text := c.settings["webhook-headers"].value; text != "" {
		if err := json.Unmarshal([]byte(text), &w.Headers); err != nil {
			c.report("webhook-headers", finding.Broken, "webhook", "The headers are not a JSON object with string values.", "add headers to the policy")
		}
	}
	return &w
}
