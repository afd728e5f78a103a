package hooks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

func TestDefaultBodyHasAllFields(t *testing.T) {
	s := subject()
	s.Message, s.Drill = "the node is cordoned: a < b\n3 pods left", true
	body, err := hooks.Body(v1beta1.Webhook{}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"text":"node-a (i-0abc, SpotInterruption): Drain: the node is cordoned: a &lt; b; 3 pods left",` +
		`"interruption":"i-0abc","uid":"uid-1","node":"node-a","instanceID":"i-0abc","kind":"SpotInterruption","policy":"kafka",` +
		`"phase":"Cordoned","reason":"Drain","message":"the node is cordoned: a < b\n3 pods left","deadline":"2026-03-01T08:17:00Z",` +
		`"drill":true,"pods":{"total":12,"moved":0,"leaving":0,"waiting":0,"lost":0}}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestSummaryIsOneLineAndShort(t *testing.T) {
	s := subject()
	s.Node, s.Kind = "", ""
	s.Message = strings.Repeat("ä\n", 5000)
	got := hooks.Summary(s)
	if len(got) > 1000 || strings.ContainsAny(got, "\n") || !strings.HasPrefix(got, "i-0abc: Drain: ä; ä") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// The bodies of docs/guides/hooks.md.
const (
	pagerDuty = `{"routing_key": "{{.Values.routingKey}}", "dedup_key": "{{.UID}}", ` +
		`"event_action": "{{if or (eq .Reason "Completed") (eq .Reason "NodeRestored")}}resolve{{else}}trigger{{end}}", ` +
		`"payload": {"summary": {{json .Text}}, "source": "{{.Node}}", "severity": "{{if eq .Reason "PodLost"}}error{{else}}warning{{end}}"}}`
	alertmanager = `[{"labels": {"alertname": "Lifeboat{{.Reason}}", "node": "{{.Node}}", "kind": "{{.Kind}}", "severity": "warning"}, ` +
		`"annotations": {"summary": {{json .Text}}}}]`
)

func TestBodiesInGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	folded := strings.Join(strings.Fields(string(guide)), " ")
	for name, body := range map[string]string{"PagerDuty": pagerDuty, "Alertmanager": alertmanager} {
		if !strings.Contains(folded, body) {
			t.Errorf("docs/guides/hooks.md has another body for %s", name)
		}
	}
}

func TestBodyFromATemplate(t *testing.T) {
	endless, hostile, compared, awaiting, completed := subject(), subject(), subject(), subject(), subject()
	awaiting.Reason, completed.Reason = "AwaitingApproval", "Completed"
	secret := map[string]v1beta1.SecretKey{"routingKey": {Name: "pagerduty", Key: "routing-key"}}
	endless.Deadline = nil
	hostile.Message = "a <!channel> & <https://example.com|here>\n\", \"x\": \"y"
	compared.Message = "a & b"
	for _, c := range []struct {
		name, template string
		s              hooks.Subject
		want           string
	}{
		{"Slack", `{"text": {{json .Message}}}`, subject(), `{"text": "the spot instance is reclaimed"}`},
		{"Slack, with bold letters", `{"text": {{printf "*%s* (%s): %s" .Node .Kind .Message | json}}}`, subject(), `{"text": "*node-a* (SpotInterruption): the spot instance is reclaimed"}`},
		{"every field", `{{.Node}} {{.InstanceID}} {{.Kind}} {{.Policy}} {{.Phase}} {{.Reason}} {{.Message}} {{.Deadline}} {{.Drill}} {{.Pods.Total}}`, subject(),
			"node-a i-0abc SpotInterruption kafka Cordoned Drain the spot instance is reclaimed 2026-03-01T08:17:00Z false 12"},
		{"no deadline", `{{with .Deadline}}by {{.}}{{else}}some day{{end}}`, endless, "some day"},
		{"the author's own markup", `{"text": {{printf "<!here> *%s*" .Node | json}}}`, subject(), `{"text": "<!here> *node-a*"}`},
		{"a message with markup", `{"text": {{json .Message}}}`, hostile, `{"text": "a &lt;!channel&gt; &amp; &lt;https://example.com|here&gt;\n\", \"x\": \"y"}`},
		{"the same with printf", `{"text": {{printf "%s: %q" .Node .Message | json}}}`, hostile,
			`{"text": "node-a: \"a &lt;!channel&gt; &amp; &lt;https://example.com|here&gt;\\n\\\", \\\"x\\\": \\\"y\""}`},
		{"the same in a JSON string", `{"text": "{{.Node}}: {{.Message}}"}`, hostile, `{"text": "node-a: a &lt;!channel&gt; &amp; &lt;https://example.com|here&gt;\n\", \"x\": \"y"}`},
		{"the same by print", `{"text": "{{print .Message}}"}`, hostile, `{"text": "a &lt;!channel&gt; &amp; &lt;https://example.com|here&gt;\n\", \"x\": \"y"}`},
		{"raw", `{"text": {{raw .Message | json}}, "again": "{{.Reason | raw}}"}`, hostile,
			`{"text": "a <!channel> & <https://example.com|here>\n\", \"x\": \"y", "again": "Drain"}`},
		{"in a URL", `https://example.com/?m={{urlquery .Message}}`, compared, `https://example.com/?m=a+%26+b`},
		{"a comparison", `{{if eq .Message "a & b"}}same{{end}}`, compared, "same"},
		{"functions", `{{printf "%s/%03d %q" .Node .Pods.Total .Kind | json}} {{urlquery "a b"}} {{print 1 2}} {{if and (eq .Policy "kafka") (ne .Pods.Total 3)}}yes{{end}}`, subject(),
			`"node-a/012 \"SpotInterruption\"" a+b 1 2 yes`},
		{"PagerDuty", pagerDuty, awaiting, `{"routing_key": "k\"1", "dedup_key": "uid-1", "event_action": "trigger", ` +
			`"payload": {"summary": "node-a (i-0abc, SpotInterruption): AwaitingApproval: the spot instance is reclaimed", "source": "node-a", "severity": "warning"}}`},
		{"PagerDuty, at the end", pagerDuty, completed, `{"routing_key": "k\"1", "dedup_key": "uid-1", "event_action": "resolve", ` +
			`"payload": {"summary": "node-a (i-0abc, SpotInterruption): Completed: the spot instance is reclaimed", "source": "node-a", "severity": "warning"}}`},
		{"Alertmanager", alertmanager, awaiting, `[{"labels": {"alertname": "LifeboatAwaitingApproval", "node": "node-a", "kind": "SpotInterruption", "severity": "warning"}, ` +
			`"annotations": {"summary": "node-a (i-0abc, SpotInterruption): AwaitingApproval: the spot instance is reclaimed"}}]`},
		{"the counts as JSON", `{{json .Pods}}`, subject(), `{"leaving":0,"lost":0,"moved":0,"total":12,"waiting":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := hooks.Body(v1beta1.Webhook{Body: c.template, ValuesFrom: secret}, c.s, map[string]string{"routingKey": `k"1`})
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// A template must not crash the process or keep it busy.
func TestTemplateTimeAndMemoryAreLimited(t *testing.T) {
	doubling := `{{$a := "0123456789"}}` + strings.Repeat(`{{$a = print $a $a}}`, 200) + `{{$a}}`
	calls := `{{define "0"}}x{{end}}`
	for i := range 60 {
		calls += fmt.Sprintf(`{{define "%d"}}{{template "%d" .}}{{template "%d" .}}{{end}}`, i+1, i, i)
	}
	for _, c := range []struct{ name, template, want string }{
		{"counts for ever", `{{range 9000000000000000000}}{{end}}`, "uses range, template, block, define or a variable"},
		{"in a condition", `{{if .Node}}{{else}}{{with .Kind}}{{range $i := 900000000000}}{{end}}{{end}}{{end}}`, "uses range, template"},
		{"in a definition", `{{define "x"}}{{range 90000000000}}{{end}}{{end}}`, "uses range, template"},
		{"calls for ever", `{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "uses range, template, block, define or a variable"},
		{"calls and calls", calls + `{{template "60" .}}`, "uses range, template"},
		{"block", `{{block "x" .}}{{end}}`, "uses range, template"},
		{"doubles", doubling, "a variable: use only"},
		{"one format, many times", `{{printf "` + strings.Repeat("%[1]s", 1000) + `" (printf "` + strings.Repeat("%[1]s", 1000) + `" .Message)}}`, "longer than 65536 bytes"},
		{"pads", `{{printf "%999999d" 1}}`, "no width or precision above 99"},
		{"pads a fraction", `{{printf "%.999999f" 1.0}}`, "no width or precision above 99"},
		{"pads by an argument", `{{printf "%*d" 999999 1}}`, "no width or precision above 99"},
		{"escapes and escapes", `{{"\"" | ` + strings.TrimSuffix(strings.Repeat("json | ", 50), " | ") + `}}`, "longer than 65536 bytes"},
		{"writes much", strings.Repeat(`{{printf "%99d" 1}}`, 700), "longer than 65536 bytes"},
		{"calls a method", `{{.Pods.DeepCopyInto nil}}`, ".Pods.DeepCopyInto is not a function"},
		{"calls what is not a function", `{{slice .Node 3 999}}`, `function "slice" not defined`},
		{"compares what cannot be", `{{eq .Pods .Pods}}`, "eq takes strings, numbers or booleans"},
		{"compares nothing", `{{eq}}`, "eq takes two values"},
		{"asks for what is not there", `{{.Nodes}}`, "there is no field Nodes"},
		{"asks in a text", `{{.Node.Name}}`, "a single value has no field Name"},
		{"writes all counts", `{{.Pods}}`, ".Pods is not a single value"},
		{"writes all fields raw", `{{raw .}}`, "raw takes one text"},
		{"is broken", `{{.Node`, "unclosed action"},
		{"is huge", strings.Repeat("x", hooks.MaxBody+1), "longer than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := hooks.Body(v1beta1.Webhook{Body: c.template}, subject(), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d bytes, %v; want an error with %q", len(got), err, c.want)
			}
		})
	}
}

func FuzzBody(f *testing.F) {
	f.Add("")
	f.Add(`{"text": {{json .Message}}}`)
	f.Add(`{{with printf "%5.2f|%-9q|%+v|%#v" 1.5 .Node .Pods .Pods}}{{. | urlquery}}{{end}}`)
	f.Add(`{{if not (or .Drill (eq .Node "a"))}}{{print .Kind 1 2.5 true}}{{else if .Policy}}{{/* no */}}{{end}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8192 {
			return
		}
		begun := time.Now()
		s := subject()
		s.Message, s.Node = "<!zq>", "\"<!zq>"
		body, err := hooks.Body(v1beta1.Webhook{Body: text}, s, nil)
		// Without a template the fields are data, and only "text" is for a chat.
		if text != "" && strings.Contains(string(body), "<!zq>") && !strings.Contains(text, "raw") && !strings.Contains(text, "!zq") {
			t.Errorf("%q: a mention in %q", text, body)
		}
		if err == nil && len(body) > hooks.MaxBody {
			t.Errorf("%d bytes", len(body))
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestCheckErrorsSayWhatToWrite(t *testing.T) {
	with := func(change func(*v1beta1.Hook)) v1beta1.Hook {
		h := jobHook(t, smallest)
		change(&h)
		return h
	}
	const write = ": write metadata (labels, annotations) and spec, as in a CronJob's jobTemplate"
	for _, c := range []struct {
		name string
		h    v1beta1.Hook
		want []string
	}{
		{"a good job", jobHook(t, smallest), nil},
		{"a good webhook", with(func(h *v1beta1.Hook) { h.Job, h.Webhook = nil, &v1beta1.Webhook{URL: "https://example.com/x"} }), nil},
		{"unknown words", with(func(h *v1beta1.Hook) {
			h.When, h.OnFailure, h.Timeout = "Now", "Panic", &metav1.Duration{Duration: time.Millisecond}
		}), []string{
			`unknown when "Now": write BeforeDrain or AfterDrain`,
			`unknown onFailure "Panic": write Continue or Hold`,
			"timeout 1ms is not between 1s and 24h: write one such as 60s",
		}},
		{"neither", with(func(h *v1beta1.Hook) { h.Job = nil }), []string{"a hook is either a job or a webhook: write one of the two"}},
		{"misspelt", jobHook(t, `{specs: {}}`), []string{`job.template: the template has fields that are not allowed: unknown field "specs"` + write}},
		{"no containers", jobHook(t, `{spec: {}}`), []string{"job.template: the template has no containers: write at least one under spec.template.spec.containers"}},
		{"what cannot work", jobHook(t, `{spec: {suspend: true, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Always, containers: [{name: main}]}}}}`), []string{
			"job.template: container 1 has no name or no image: write both",
			"job.template: Jobs do not allow restartPolicy Always: write Never or OnFailure, or remove it",
			"job.template: suspend: true prevents the Job from running: remove it",
			"job.template: ttlSecondsAfterFinished 0 is too short for Lifeboat to read the Job's result: write at least 60, or remove it",
		}},
		{"one of Lifeboat's accounts", jobHook(t, `{spec: {template: {spec: {serviceAccountName: lifeboat-agent, containers: [{name: main, image: x}]}}}}`), []string{
			"job.template: its Job may not run as Lifeboat's own ServiceAccount lifeboat-agent: write another serviceAccountName",
		}},
		{"the same by the deprecated field", jobHook(t, `{spec: {template: {spec: {serviceAccount: lifeboat-controller, containers: [{name: main, image: x}]}}}}`), []string{
			"job.template: its Job may not run as Lifeboat's own ServiceAccount lifeboat-controller: write another serviceAccountName",
		}},
		{"both fields", jobHook(t, `{spec: {template: {spec: {serviceAccountName: kafka-admin, serviceAccount: lifeboat-controller, containers: [{name: main, image: x}]}}}}`), []string{
			"job.template: its Job may not run as Lifeboat's own ServiceAccount lifeboat-controller: write another serviceAccountName",
		}},
		{"labels of a program", jobHook(t, `{metadata: {labels: {app.kubernetes.io/part-of: x}}, spec: {template: {metadata: {labels: {team: a, app.kubernetes.io/name: lifeboat}}, spec: {containers: [{name: main, image: x}]}}}}`), []string{
			"job.template: the label app.kubernetes.io/part-of is reserved for the programs of the cluster: write a label with another prefix",
			"job.template: the label app.kubernetes.io/name is reserved for the programs of the cluster: write a label with another prefix",
		}},
		{"a bad webhook", with(func(h *v1beta1.Hook) { h.Job, h.Webhook = nil, &v1beta1.Webhook{URL: "https:///x"} }), []string{
			"webhook.url: the URL has no host: write one such as https://hooks.example.com/lifeboat",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, hooks.Check(c.h)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCheckWebhookErrorsHideSecrets(t *testing.T) {
	for _, c := range []struct {
		name string
		w    v1beta1.Webhook
		want []string
	}{
		{"from a Secret", v1beta1.Webhook{URLFrom: &v1beta1.SecretKey{Name: "slack", Key: "url"}, Headers: map[string]string{"X-Team": "kafka", "Content-Type": "text/plain"}}, nil},
		{"neither", v1beta1.Webhook{}, []string{"url: a webhook has either url or urlFrom: write one of the two"}},
		{"both", v1beta1.Webhook{URL: "https://x", URLFrom: &v1beta1.SecretKey{}}, []string{"url: a webhook has either url or urlFrom: write one of the two"}},
		{"half a Secret", v1beta1.Webhook{URLFrom: &v1beta1.SecretKey{Name: "slack"}}, []string{"urlFrom: both name and key are required: write the name of a Secret in Lifeboat's namespace and the key of the entry in it"}},
		{"no scheme", v1beta1.Webhook{URL: "hooks.example.com/s3cret"}, []string{"url: the URL has no supported scheme: begin it with https:// (or http://)"}},
		{"no URL", v1beta1.Webhook{URL: "https://x/%zz?s3cret"}, []string{"url: the URL is not valid: write one such as https://hooks.example.com/lifeboat"}},
		{"headers", v1beta1.Webhook{URL: "https://x", Headers: map[string]string{"": "", "X Y": "1", "Host": "y", "X-Z": "a\r\nEvil: b"}}, []string{
			`headers: "" is not a header name: write letters, digits and hyphens, such as X-Team`,
			"headers: Host is set from the request: remove it",
			`headers: "X Y" is not a header name: write letters, digits and hyphens, such as X-Team`,
			"headers: the value of X-Z contains a line break or another control character: remove it",
		}},
		{"headers from Secrets", v1beta1.Webhook{URL: "https://x", Headers: map[string]string{"X-Token": "1"}, HeadersFrom: map[string]v1beta1.SecretKey{
			"Authorization": {Name: "pager", Key: "token"}, "Host": {Name: "a", Key: "b"}, "X-A": {Name: "a"}, "x-token": {Name: "a", Key: "b"},
		}}, []string{
			"headersFrom: Host is set from the request: remove it",
			"headersFrom: X-A needs both name and key: write the name of a Secret in Lifeboat's namespace and the key of the entry in it",
			"headersFrom: x-token is in headers too: remove one of the two",
		}},
		{"values from Secrets", v1beta1.Webhook{URL: "https://x", ValuesFrom: map[string]v1beta1.SecretKey{"a-b": {Name: "a", Key: "b"}, "c": {Name: "a"}}}, []string{
			"valuesFrom: only a body of your own contains the values: write body, or remove valuesFrom",
			`valuesFrom: "a-b" cannot be used as .Values.NAME: write letters and digits, such as routingKey`,
			"valuesFrom: c needs both name and key: write the name of a Secret in Lifeboat's namespace and the key of the entry in it",
		}},
		{"a body that does not parse", v1beta1.Webhook{URL: "https://x", Body: "{{"}, []string{"body: parsing the template: template: body:1: unclosed action"}},
		{"a body that does not work", v1beta1.Webhook{URL: "https://x", Body: "{{.Name}}"}, []string{
			`body: rendering the body: line 1: there is no field Name: there are Node, InstanceID, Kind, Policy, Phase, Reason, Message, Deadline, Drill, Pods, Text, Interruption and UID, in Pods Total, Moved, Leaving, Waiting and Lost, and in Values the names of valuesFrom`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, hooks.CheckWebhook(c.w)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAwaited(t *testing.T) {
	start := metav1.NewMicroTime(time.Date(2026, 3, 1, 8, 14, 2, 0, time.UTC))
	end := metav1.NewMicroTime(start.Add(time.Minute))
	all := []v1beta1.Hook{
		{Name: "last", When: v1beta1.HookAfterDrain},
		{Name: "a", When: v1beta1.HookBeforeDrain, Retries: 2},
		{Name: "b", When: v1beta1.HookBeforeDrain, OnFailure: v1beta1.HookHold, Timeout: &metav1.Duration{Duration: 24 * time.Hour}},
	}
	done := v1beta1.HookStatus{Name: "a", State: v1beta1.HookSucceeded, Try: 1, StartTime: start, CompletionTime: &end}
	for _, c := range []struct {
		name    string
		status  []v1beta1.HookStatus
		goAhead time.Time
		want    string
	}{
		{"none has begun", nil, time.Time{}, "hook a runs first"},
		{"the first runs", []v1beta1.HookStatus{{Name: "a", State: v1beta1.HookRunning, Try: 2, StartTime: start}}, time.Time{}, "hook a runs (try 2 of 3, at most until 08:15:02 UTC)"},
		{"the first is between two tries", []v1beta1.HookStatus{{Name: "a", State: v1beta1.HookFailed, Try: 2, StartTime: start}}, time.Time{}, "hook a is tried again at 08:14:06 UTC (try 3 of 3)"},
		{"the first has failed and is not held for", []v1beta1.HookStatus{{Name: "a", State: v1beta1.HookFailed, Try: 3, StartTime: start, CompletionTime: &end}}, time.Time{}, "hook b runs first"},
		{"the second runs for long", []v1beta1.HookStatus{done, {Name: "b", State: v1beta1.HookRunning, Try: 1, StartTime: start}}, time.Time{}, "hook b runs (try 1 of 1, at most until 2026-03-02 08:14:02 UTC)"},
		{"the second holds", []v1beta1.HookStatus{done, {Name: "b", State: v1beta1.HookFailed, Try: 1, StartTime: start, CompletionTime: &end}}, start.Time, "hook b failed and the policy holds the drain; `lifeboat approve node-a` continues it"},
		{"a person goes on", []v1beta1.HookStatus{done, {Name: "b", State: v1beta1.HookFailed, Try: 1, StartTime: start, CompletionTime: &end}}, end.Add(time.Second), ""},
		{"all have succeeded", []v1beta1.HookStatus{done, {Name: "b", State: v1beta1.HookSucceeded, CompletionTime: &end}}, time.Time{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hooks.Awaited(all, v1beta1.HookBeforeDrain, c.status, subject(), c.goAhead); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if got := hooks.Awaited(all[1:], v1beta1.HookAfterDrain, nil, subject(), time.Time{}); got != "" {
		t.Errorf("waits: %s", got)
	}
}

func TestBackoffDoublesUpToOneMinute(t *testing.T) {
	var got []string
	for tries := range int32(8) {
		got = append(got, hooks.Backoff(tries).String())
	}
	if diff := cmp.Diff([]string{"2s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
