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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/convert"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Convert makes a policy of the handler's settings. Where the defaults do all that was
// set, there is none, and the output is empty. The error names the file that has
// nothing of the handler's in it. There has to be a file.
func Convert(files []convert.File) (*convert.Result, error) {
	s, err := read(files)
	if err != nil {
		return nil, err
	}
	c := &converter{settings: s, result: &convert.Result{Converted: len(files)}, file: files[0].Name}
	for _, flag := range slices.Sorted(maps.Keys(s)) {
		c.answer(flag)
	}
	spec := c.policy()
	if len(spec.Rules) == 0 {
		c.say("", finding.Info, "no-policy", "Lifeboat's defaults do what was set, and more: no policy is needed.", "")
		return c.result, nil
	}
	if c.result.Output, err = manifest(spec); err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return c.result, nil
}

// manifest writes a policy, without what says nothing.
func manifest(spec v1alpha1.InterruptionPolicySpec) ([]byte, error) {
	var document struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       map[string]any    `json:"spec"`
	}
	document.APIVersion, document.Kind, document.Metadata = v1alpha1.GroupVersion.String(), "InterruptionPolicy", map[string]string{"name": "from-nth"}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &document.Spec)
	}
	if err != nil {
		return nil, err
	}
	delete(document.Spec, "nodes") // all of them
	return yaml.Marshal(document)
}

// converter is one conversion under way.
type converter struct {
	settings

	result *convert.Result
	// file is where what is not set is said to be.
	file string
}

// say adds a finding about a flag.
func (c *converter) say(flag string, severity finding.Severity, id, problem, fix string) {
	f := convert.Finding{Finding: finding.Finding{Severity: severity, ID: id, Object: "flag " + flag, Problem: problem, Fix: fix}}
	if flag == "" {
		f.Object = "AWS Node Termination Handler"
	}
	f.File, f.Line = c.file, 1
	if at, set := c.settings[flag]; set {
		f.File, f.Line = at.file, at.line
	}
	c.result.Findings = append(c.result.Findings, f)
}

// answer says what becomes of a flag, unless it is as usual or the policy has it.
func (c *converter) answer(flag string) {
	a, _ := find(flag)
	if a.says == "" || c.settings[flag].value == a.usual {
		return
	}
	if flag == terminations && c.on("cordon-only") {
		return // cordons has it
	}
	c.say(flag, a.severity, "flag", a.says, a.mend)
}

// policy is what the settings come to.
func (c *converter) policy() v1alpha1.InterruptionPolicySpec {
	var spec v1alpha1.InterruptionPolicySpec
	switch {
	case c.on("dry-run"):
		c.say("dry-run", finding.Warning, "dry-run", "The policy has Lifeboat ignore everything: it goes by the name of what NTH calls a dry run. Interruptions are written down all the same.", "delete the policy when Lifeboat is to act")
		spec.Rules = []v1alpha1.Rule{{Name: "dry-run", Kinds: []string{"*"}, Action: v1alpha1.ActionIgnore}}
	case c.on("cordon-only"):
		spec.Rules = c.cordons()
	default:
		spec.Rules = c.rules()
	}
	if webhook := c.webhook(); webhook != nil {
		spec.Notifications = []v1alpha1.Notification{{Name: "from-nth", Reasons: []string{v1alpha1.ReasonDrained, v1alpha1.ReasonPodLost}, Webhook: *webhook}}
		if len(spec.Rules) == 0 { // a policy has one at least: this is the default
			spec.Rules = []v1alpha1.Rule{{Name: "spot", Kinds: []string{notice.KindSpotInterruption}, Action: v1alpha1.ActionDrain, Replacement: v1alpha1.ReplacementBefore}}
		}
	}
	return spec
}

func (c *converter) rules() []v1alpha1.Rule {
	var rules []v1alpha1.Rule
	add := func(name, kind string, action v1alpha1.Action) {
		rules = append(rules, v1alpha1.Rule{Name: name, Kinds: []string{kind}, Action: action})
	}
	if c.switchedOff("enable-spot-interruption-draining") {
		add("spot", notice.KindSpotInterruption, v1alpha1.ActionIgnore)
	}
	if c.switchedOff("enable-scheduled-event-draining") {
		add("scheduled", notice.KindScheduledChange, v1alpha1.ActionIgnore)
	} else {
		c.say("enable-scheduled-event-draining", finding.Warning, "scheduled", "NTH drains for a scheduled event at once, also weeks before; Lifeboat from an hour before.", "notBefore in a rule for ScheduledChange, where earlier is better")
	}
	switch {
	case c.queue() && !c.on("enable-rebalance-draining"):
		c.say("enable-rebalance-draining", finding.Warning, "rebalance", "In queue mode NTH drains for every rebalance recommendation that reaches its queue, whatever its flags say; the policy has Lifeboat mark the node only, which is the default.",
			"a rule for RebalanceRecommendation with action: Drain, where such a rule filled NTH's queue")
	case c.on("enable-rebalance-draining"):
		add("rebalance", notice.KindRebalanceRecommendation, v1alpha1.ActionDrain)
	case c.on("enable-rebalance-monitoring"):
		add("rebalance", notice.KindRebalanceRecommendation, v1alpha1.ActionCordon)
	}
	if until, ok := c.until(); ok {
		rules = append(rules, v1alpha1.Rule{
			Name: "terminations", Kinds: []string{notice.KindAutoScalingTermination}, Action: v1alpha1.ActionDrain, DrainTimeout: &metav1.Duration{Duration: until},
		})
	}
	return rules
}

// The least and the most that a drain may be given.
const (
	leastDrain = time.Minute
	mostDrain  = 48 * time.Hour
)

// until is for how long a termination is extended.
func (c *converter) until() (time.Duration, bool) {
	value := c.settings["heartbeat-until"].value
	seconds, err := strconv.Atoi(value)
	switch {
	case value == "", err == nil && seconds < 0:
		return 0, false
	case err != nil:
		c.say("heartbeat-until", finding.Broken, "flag", fmt.Sprintf("%q is no number of seconds.", value), "drainTimeout in a rule for AutoScalingTermination")
		return 0, false
	}
	return min(max(time.Duration(seconds)*time.Second, leastDrain), mostDrain), true
}

// slackBody is what the handler's own template comes to.
const slackBody = `{"text": {{printf "%s (%s): %s" .Node .Kind .Message | json}}}`

// webhook is the one that is told, or nil.
func (c *converter) webhook() *v1alpha1.Webhook {
	w := v1alpha1.Webhook{Body: slackBody}
	url, secret := c.settings["webhook-url"], c.settings["webhook-url-secret-name"].value
	switch {
	case url.secret != "":
		w.URLFrom = &v1alpha1.SecretKey{Name: url.secret, Key: url.key}
	case secret != "":
		w.URLFrom = &v1alpha1.SecretKey{Name: secret, Key: "webhookurl"}
	case url.value != "":
		w.URL = url.value
		c.say("webhook-url", finding.Warning, "webhook", "The URL stands in the policy, where whoever may read policies can read it.", "a Secret in lifeboat-system, named in webhooks.secrets of the chart, and urlFrom")
	default:
		return nil
	}
	if w.URLFrom != nil {
		c.say("webhook-url", finding.Warning, "webhook", fmt.Sprintf("The URL is taken from the Secret %s, which has to be in Lifeboat's namespace.", w.URLFrom.Name),
			"copy it to lifeboat-system, and name it in webhooks.secrets of the chart")
	}
	if text := c.settings["webhook-headers"].value; text != "" {
		if err := json.Unmarshal([]byte(text), &w.Headers); err != nil {
			c.say("webhook-headers", finding.Broken, "webhook", "The headers are no JSON object of texts.", "write headers into the policy")
		}
	}
	return &w
}
