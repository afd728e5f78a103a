package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const chartDir = "../../charts/lifeboat"

// values parses values in YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

// with merges values over the required ones.
func with(t *testing.T, text string) map[string]any {
	t.Helper()
	base := values(t, "{image: {repository: lifeboatd}, aws: {queueURL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod'}}")
	return merge(base, values(t, text))
}

func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		if over, ok := v.(map[string]any); ok {
			if under, ok := out[k].(map[string]any); ok {
				v = merge(under, over)
			}
		}
		out[k] = v
	}
	return out
}

// everything is a set of values that covers every branch of every template.
const everything = `
image: {tag: v9, digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', pullPolicy: Always, pullSecrets: [{name: pull}]}
aws: {account: '123456789012', region: eu-west-1, clusterName: prod.example.com}
commonLabels: {team: platform}
commonAnnotations: {argocd.argoproj.io/sync-wave: '5'}
extraObjects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: lifeboat-system, labels: {team: platform}, annotations: {argocd.argoproj.io/sync-wave: '5'}}}
controller:
  canaryInterval: 10m
  revisionHistoryLimit: 7
  terminationGracePeriodSeconds: 45
  strategy: {type: Recreate}
  topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]
  startupProbe: {failureThreshold: 30}
  envFrom: [{secretRef: {name: proxy}}]
  extraVolumes: [{name: ca, configMap: {name: ca}}]
  extraVolumeMounts: [{name: ca, mountPath: /ca}]
  initContainers: [{name: first, image: first}]
  sidecars: [{name: beside, image: beside}]
  dnsConfig: {options: [{name: ndots, value: '1'}]}
  hostAliases: [{ip: 10.0.0.1, hostnames: [proxy]}]
  replicas: 3
  serviceAccount: {annotations: {a: b}}
  extraArgs: [--text-logs=true]
  extraEnv: [{name: AWS_STS_REGIONAL_ENDPOINTS, value: regional}]
  hostNetwork: true
  nodeSelector: {pool: infra}
  annotations: {g: h}
  podAnnotations: {c: d}
  podLabels: {e: f}
agent:
  namespace: agents
  serviceAccount: {annotations: {a: b}}
  extraArgs: [--some-flag=1]
  metrics: true
  extraEnv: [{name: GOMAXPROCS, value: '1'}]
  hostNetwork: false
  nodeSelector: {kubernetes.io/arch: arm64}
  annotations: {g: h}
  podAnnotations: {c: d}
  podLabels: {e: f}
hooks: {namespaces: [default, kube-public]}
webhooks: {secrets: [slack, pager]}
metrics:
  serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}
  podMonitor: {enabled: true, namespace: monitoring, scrapeTimeout: 5s, sampleLimit: 1000000, relabelings: [{action: labeldrop, regex: pod}], endpointConfig: {honorLabels: true}}
`

// sets are values that must work: the examples and other combinations.
func sets(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{
		"only what is required": with(t, ""),
		"everything":            with(t, everything),
		"with CRDs":             with(t, "crds: {install: true}"),
		"with network policies": with(t, "networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}"),
		"with secure metrics":   with(t, "metrics: {secure: true, serviceMonitor: {enabled: true}, podMonitor: {enabled: true, endpointConfig: {authorization: {credentials: {name: a, key: b}}}}}"),
		"with the console":      with(t, "{console: {enabled: true, allowFrom: [{ipBlock: {cidr: 10.0.0.0/16}}]}, tracing: {endpoint: 'http://collector:4318'}}"),
		"as little as possible": with(t, "{agent: {enabled: false}, flowControl: {enabled: false}, metrics: {service: false}, controller: {replicas: 1, affinity: null, tolerations: []}}"),
	}
	paths, err := filepath.Glob(chartDir + "/examples/values-*.yaml")
	if err != nil || len(paths) != 5 {
		t.Fatalf("found the examples %v, %v: want 5", paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = values(t, string(text))
	}
	return out
}

func render(t *testing.T, v map[string]any) chart.Manifests {
	t.Helper()
	m, err := chart.Render(t.Context(), chart.Options{Values: v})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names returns "Kind name" of each object.
func names(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetName())
	}
	return out
}

func TestChartRelease(t *testing.T) {
	m := render(t, with(t, everything))
	if diff := cmp.Diff([]string{
		"CustomResourceDefinition interruptionpolicies.lifeboat.dev", "CustomResourceDefinition interruptions.lifeboat.dev", "CustomResourceDefinition nodegroups.lifeboat.dev", "CustomResourceDefinition nodenotices.lifeboat.dev", "CustomResourceDefinition pauses.lifeboat.dev",
	}, names(m.CRDs)); diff != "" {
		t.Errorf("CRDs (-want +got):\n%s", diff)
	}
	want := []string{
		"PodDisruptionBudget lifeboat-controller",
		"ServiceAccount lifeboat-controller", "ServiceAccount lifeboat-agent", "ConfigMap extra",
		"ClusterRole lifeboat-agent", "ClusterRole lifeboat-viewer", "ClusterRole lifeboat-controller", "ClusterRole lifeboat-operator", "ClusterRole lifeboat-nodegroups",
		"ClusterRoleBinding lifeboat-agent", "ClusterRoleBinding lifeboat-controller",
		"Role lifeboat-controller", "Role lifeboat-hooks", "Role lifeboat-hooks", "Role lifeboat-webhooks",
		"RoleBinding lifeboat-controller", "RoleBinding lifeboat-hooks", "RoleBinding lifeboat-hooks", "RoleBinding lifeboat-webhooks",
		"Service lifeboat-controller", "Service lifeboat-agent",
		"DaemonSet lifeboat-agent", "Deployment lifeboat-controller",
		"FlowSchema lifeboat-leader-election", "FlowSchema lifeboat-controller-background", "FlowSchema lifeboat-controller", "FlowSchema lifeboat-agent",
		"Lease lifeboat-drills",
		"PodMonitor lifeboat", "PriorityLevelConfiguration lifeboat", "PriorityLevelConfiguration lifeboat-background", "ServiceMonitor lifeboat",
		"ValidatingAdmissionPolicy lifeboat-agent", "ValidatingAdmissionPolicy lifeboat-controller", "ValidatingAdmissionPolicy lifeboat-hooks", "ValidatingAdmissionPolicy lifeboat-interruptions", "ValidatingAdmissionPolicy lifeboat-pauses",
		"ValidatingAdmissionPolicyBinding lifeboat-agent", "ValidatingAdmissionPolicyBinding lifeboat-controller", "ValidatingAdmissionPolicyBinding lifeboat-hooks", "ValidatingAdmissionPolicyBinding lifeboat-interruptions", "ValidatingAdmissionPolicyBinding lifeboat-pauses",
	}
	if diff := cmp.Diff(want, names(m.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, o := range m.Objects {
		if got := o.GetLabels()["team"]; got != "platform" {
			t.Errorf("%s %s has the label team=%q, want the common one", o.GetKind(), o.GetName(), got)
		}
		if got := o.GetAnnotations()["argocd.argoproj.io/sync-wave"]; got != "5" {
			t.Errorf("%s %s has the sync wave %q, want the common annotation", o.GetKind(), o.GetName(), got)
		}
	}
}

func TestNetworkPolicyLimitsTheController(t *testing.T) {
	for _, o := range render(t, with(t, "networkPolicy: {enabled: true, metricsFrom: [{podSelector: {}}], egressPorts: [443]}")).Objects {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		var p networkingv1.NetworkPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
			t.Fatal(err)
		}
		in, out := p.Spec.Ingress, p.Spec.Egress
		if len(in) != 2 || in[0].Ports[0].Port.IntValue() != 8080 || len(in[0].From) != 1 || in[1].Ports[0].Port.IntValue() != 8081 {
			t.Errorf("ingress %+v", in)
		}
		if len(out) != 2 || len(out[0].Ports) != 3 || out[0].Ports[2].Port.IntValue() != 443 || len(out[1].To) != 4 {
			t.Errorf("egress %+v", out)
		}
		return
	}
	t.Error("there is no NetworkPolicy")
}

func TestWithoutSurgeTheControllerPatchesNoPods(t *testing.T) {
	for surge, want := range map[string]bool{"true": true, "false": false} {
		v := with(t, "surge: {enabled: "+surge+"}")
		if got := slices.Contains(deployment(t, v).Spec.Template.Spec.Containers[0].Args, "--surge=false"); got == want {
			t.Errorf("surge.enabled=%s: --surge=false is passed: %v", surge, got)
		}
		for _, o := range render(t, v).Objects {
			var role rbacv1.ClusterRole
			if o.GetKind() != "ClusterRole" || o.GetName() != chart.ControllerAccount {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Resources, "pods") && slices.Contains(r.Verbs, "patch")
			})
			if got != want {
				t.Errorf("surge.enabled=%s: pods may be patched: %v", surge, got)
			}
		}
	}
}

// Only a cluster whose policies wait for load balancers lets the controller list their bindings.
func TestTargetGroupBindingsAreAnOption(t *testing.T) {
	for enabled, want := range map[string]bool{"true": true, "false": false} {
		found := false
		for _, o := range render(t, with(t, "waitForDeregistration: {enabled: "+enabled+"}")).Objects {
			text, err := yaml.Marshal(o.Object["rules"])
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.HasSuffix(o.GetKind(), "Role") && strings.Contains(string(text), "targetgroupbindings")
		}
		if found != want {
			t.Errorf("waitForDeregistration.enabled=%s: TargetGroupBindings may be listed: %t", enabled, found)
		}
	}
}

// The doctor reports each permission that it requires and the controller does not have. So it requires
// none that the chart's defaults do not grant.
func TestDoctorRequiresOnlyWhatTheChartGrants(t *testing.T) {
	required, err := installed.Required(installed.Uses{Surge: true})
	if err != nil {
		t.Fatal(err)
	}
	var everywhere, own []authorizationv1.ResourceRule
	for _, o := range render(t, with(t, "{}")).Objects {
		var role rbacv1.ClusterRole // a Role has the same fields
		if o.GetName() != "lifeboat-controller" || !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			granted := authorizationv1.ResourceRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs, ResourceNames: rule.ResourceNames}
			own = append(own, granted)
			if o.GetKind() == "ClusterRole" {
				everywhere = append(everywhere, granted)
			}
		}
	}
	for _, p := range installed.Denied(required, everywhere, own) {
		t.Errorf("the doctor requires to %s (namespace %q)", p, p.Namespace)
	}
}

func TestDisabledAgentHasNoObjects(t *testing.T) {
	for _, name := range names(render(t, with(t, "agent: {enabled: false}")).Objects) {
		if strings.HasSuffix(name, "-agent") {
			t.Errorf("unexpected object %s", name)
		}
	}
}

// TestControllerRulesAreGenerated checks that the chart's rules equal the
// generated ones.
func TestControllerRulesAreGenerated(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []any
	for _, doc := range strings.Split(string(text), "\n---\n") {
		role := values(t, strings.TrimPrefix(doc, "---\n"))
		if role["metadata"].(map[string]any)["namespace"] != "lifeboat-hooks" && role["metadata"].(map[string]any)["name"] != "lifeboat-metrics" { // granted per namespace of hooks.namespaces, and with metrics.secure
			want = append(want, role["rules"])
		}
	}
	var got []any
	for _, o := range render(t, with(t, "waitForDeregistration: {enabled: true}")).Objects {
		if strings.HasSuffix(o.GetKind(), "Role") && o.GetName() == chart.ControllerAccount {
			text, err := yaml.Marshal(o.Object["rules"])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, values(t, "rules:\n"+string(text))["rules"])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-generated +rendered):\n%s", diff)
	}
}

func deployment(t *testing.T, v map[string]any) appsv1.Deployment {
	t.Helper()
	for _, o := range render(t, v).Objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Fatal("no Deployment")
	return appsv1.Deployment{}
}

func TestValuesReachController(t *testing.T) {
	image := "lifeboatd@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	d := deployment(t, with(t, everything))
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != image {
		t.Errorf("image %s, want the digest to go before the tag: %s", c.Image, image)
	}
	for _, arg := range []string{
		"--queue-url=https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod", "--account=123456789012", "--cluster-name=prod.example.com",
		"--region=eu-west-1", "--leader-elect=true", "--leader-election-namespace=lifeboat-system", "--text-logs=true",
	} {
		if !slices.Contains(c.Args, arg) {
			t.Errorf("arguments %q have no %s", c.Args, arg)
		}
	}
	if s := d.Spec.Template.Spec; !s.HostNetwork || s.NodeSelector["pool"] != "infra" || *d.Spec.Replicas != 3 {
		t.Errorf("hostNetwork %v, nodeSelector %v, replicas %d", s.HostNetwork, s.NodeSelector, *d.Spec.Replicas)
	}
	if got := deployment(t, with(t, "image: {tag: v9}")).Spec.Template.Spec.Containers[0].Image; got != "lifeboatd:v9" {
		t.Errorf("image %s, want the tag", got)
	}
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		want   string
	}{
		"a misspelt value":                  {"agent: {enable: true}", "at '/agent': additional properties 'enable' not allowed"},
		"a misspelt section":                {"contoller: {}", "additional properties 'contoller' not allowed"},
		"no image":                          {"image: {repository: ''}", "image.repository is empty: write where lifeboatd's image is in your registry"},
		"a tag in the repository":           {"image: {repository: 'lifeboatd:v1'}", "at '/image/repository': 'lifeboatd:v1' does not match pattern"},
		"no queue":                          {"aws: {queueURL: ''}", "aws.queueURL is empty: write the URL of the SQS queue that `lifeboat aws setup` prints"},
		"a queue's name for its URL":        {"aws: {queueURL: lifeboat-prod}", "at '/aws/queueURL': 'lifeboat-prod' does not match pattern"},
		"a queue's ARN for its URL":         {"aws: {queueURL: 'arn:aws:sqs:eu-west-1:123456789012:q'}", "at '/aws/queueURL'"},
		"an account that is a number":       {"aws: {account: 123456789012}", "at '/aws/account': got number, want string"},
		"an account too short":              {"aws: {account: '12345'}", "at '/aws/account': '12345' does not match pattern"},
		"a zone for a region":               {"aws: {region: eu-west-1a}", "at '/aws/region': 'eu-west-1a' does not match pattern"},
		"a cluster's name that is a number": {"aws: {clusterName: 42}", "at '/aws/clusterName': got number, want string"},
		"a cluster's ARN for its name":      {"aws: {clusterName: 'arn:aws:eks:eu-west-1:123456789012:cluster/prod'}", "at '/aws/clusterName'"},
		"replicas as text":                  {"controller: {replicas: two}", "at '/controller/replicas': got string, want integer"},
		"no replica":                        {"controller: {replicas: 0}", "at '/controller/replicas': minimum: got 0, want 1"},
		"a margin without a unit":           {"controller: {margin: '10'}", "at '/controller/margin': '10' does not match pattern"},
		"an argument that is no flag":       {"controller: {extraArgs: [margin=5s]}", "at '/controller/extraArgs/0': 'margin=5s' does not match pattern"},
		"a port out of range":               {"agent: {ports: {metrics: 99999}}", "at '/agent/ports/metrics': maximum: got 99,999, want 65,535"},
		"a pull policy that is not one":     {"image: {pullPolicy: Sometimes}", "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		"a label that is the chart's":       {"commonLabels: {app.kubernetes.io/name: mine}", "commonLabels sets app.kubernetes.io/name, which is one of the chart's own labels"},
		"a pod's label that is the chart's": {"agent: {podLabels: {helm.sh/chart: mine}}", "agent.podLabels sets helm.sh/chart"},
		"tolerating doom":                   {"controller: {tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]}", "scheduled to the nodes that it drains"},
		"tolerating everything":             {"controller: {tolerations: [{operator: Exists}]}", "scheduled to the nodes that it drains"},
		"an invalid hook namespace":         {"hooks: {namespaces: [Team_A]}", "at '/hooks/namespaces/0': 'Team_A' does not match pattern"},
		"a policy for the node's network":   {"{networkPolicy: {enabled: true}, controller: {hostNetwork: true}}", "networkPolicy.enabled has no effect with controller.hostNetwork"},
		"a hook's namespace twice":          {"hooks: {namespaces: [a, a]}", "at '/hooks/namespaces': items at 0 and 1 are equal"},
		"a hook's namespace that is ours":   {"hooks: {namespaces: [lifeboat-system]}", "hooks.namespaces names lifeboat-system, where hooks may not run Jobs"},
		"a hook's namespace of the agent":   {"{hooks: {namespaces: [agents]}, agent: {namespace: agents}}", "hooks.namespaces names agents, where hooks may not run Jobs"},
		"an invalid agent namespace":        {"agent: {namespace: Agents}", "at '/agent/namespace': 'Agents' does not match pattern"},
		"an invalid hook name":              {"controller: {lifecycleHooks: ['a: b']}", "at '/controller/lifecycleHooks/0': 'a: b' does not match pattern"},
		"a Secret with its namespace":       {"webhooks: {secrets: [lifeboat-system/slack]}", "at '/webhooks/secrets/0': 'lifeboat-system/slack' does not match pattern"},
		"a probe of something else":         {"controller: {livenessProbe: {exec: {command: [ls]}}}", "at '/controller/livenessProbe/exec'"},
		"a mode in lower case":              {"mode: observe", "at '/mode': value must be one of 'Act', 'Observe'"},
		"a canary without a unit":           {"controller: {canaryInterval: '10'}", "at '/controller/canaryInterval'"},
		"a monitor's label that is ours":    {"metrics: {podMonitor: {labels: {helm.sh/chart: mine}}}", "metrics.podMonitor.labels sets helm.sh/chart"},
		"secure metrics of agents":          {"{agent: {metrics: true}, metrics: {secure: true, serviceMonitor: {enabled: true}}}", "set agent.metrics=false, or write a monitor of your own"},
		"a monitor of Services left out":    {"metrics: {service: false, serviceMonitor: {enabled: true}}", "metrics.serviceMonitor needs the Services: set metrics.service=true"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chart.Render(t.Context(), chart.Options{Values: with(t, test.values)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want it to contain %q", test.values, err, test.want)
			}
		})
	}
	_, err := chart.Render(t.Context(), chart.Options{Values: with(t, ""), Namespace: "default"})
	if err == nil || !strings.Contains(err.Error(), "install into lifeboat-system") {
		t.Errorf("in another namespace: error %v, want it to name the right one", err)
	}
}

func TestNotesNameMissingValues(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod",
		"agent: {enabled: false}":   "The agent is left out",
		"controller: {replicas: 1}": "With one replica",
		"hooks: {namespaces: [a]}":  "Hooks of policies may run Jobs in a.",
		"webhooks: {secrets: [s]}":  "take their URLs from the Secrets s",
	} {
		if notes := render(t, with(t, text)).Notes; !strings.Contains(notes, want) {
			t.Errorf("with %q the notes have no %q:\n%s", text, want, notes)
		}
	}
}

func TestExamplesNameNoRegistry(t *testing.T) {
	for name, v := range sets(t) {
		for _, c := range deployment(t, v).Spec.Template.Spec.Containers {
			if strings.Contains(c.Image, "/") {
				t.Errorf("%s: image %s names a registry", name, c.Image)
			}
		}
	}
}

// TestJobsAreLimitedToHookNamespaces checks that the controller may create Jobs in the
// namespaces of hooks.namespaces and in no other.
func TestJobsAreLimitedToHookNamespaces(t *testing.T) {
	for values, want := range map[string][]string{
		"": nil, "hooks: {namespaces: [a, b]}": {"Role lifeboat-hooks in a", "Role lifeboat-hooks in b"},
	} {
		var got []string
		for _, o := range render(t, with(t, values)).Objects {
			all, _, err := unstructured.NestedSlice(o.Object, "rules")
			if !strings.HasSuffix(o.GetKind(), "Role") || err != nil {
				continue
			}
			if slices.ContainsFunc(all, func(r any) bool {
				groups, _, err := unstructured.NestedStringSlice(r.(map[string]any), "apiGroups")
				return err == nil && slices.Contains(groups, "batch")
			}) {
				got = append(got, o.GetKind()+" "+o.GetName()+" in "+o.GetNamespace())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: roles with Jobs (-want +got):\n%s", values, diff)
		}
		args := deployment(t, with(t, values)).Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, "--hook-namespaces=a,b") != (want != nil) {
			t.Errorf("%q: arguments %q", values, args)
		}
	}
}

func TestWebhooksAreLimitedByDefault(t *testing.T) {
	for values, want := range map[string]bool{"": false, "webhooks: {allowHTTP: true, allowPrivate: true}": true} {
		args := deployment(t, with(t, values)).Spec.Template.Spec.Containers[0].Args
		for _, arg := range []string{"--webhook-allow-http", "--webhook-allow-private"} {
			if slices.Contains(args, arg) != want {
				t.Errorf("%q: arguments %q", values, args)
			}
		}
	}
}

// The admission policy refuses the taint that evicts every pod of a node, until the option is on.
func TestOutOfServiceTaintIsAnOption(t *testing.T) {
	for enabled, want := range map[string]bool{"true": true, "false": false} {
		v := with(t, "outOfServiceTaint: {enabled: "+enabled+"}")
		if got := slices.Contains(deployment(t, v).Spec.Template.Spec.Containers[0].Args, "--out-of-service-taint"); got != want {
			t.Errorf("outOfServiceTaint.enabled=%s: the flag is passed: %t", enabled, got)
		}
		found := false
		for _, o := range render(t, v).Objects {
			if o.GetKind() != "ValidatingAdmissionPolicy" || o.GetName() != chart.ControllerAccount {
				continue
			}
			found = true
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if refused := !strings.Contains(string(text), "true || variables.isPod"); refused == want {
				t.Errorf("outOfServiceTaint.enabled=%s: the admission policy refuses the taint: %t", enabled, refused)
			}
		}
		if !found {
			t.Error("the admission policy is missing")
		}
	}
}
