package machines

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Karpenter's user data for Amazon Linux 2023, with a shorter list of labels.
const karpenterNodeConfig = `# Karpenter Generated NodeConfig
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {}
spec:
  cluster:
    apiServerEndpoint: https://127.0.0.1:20000
    certificateAuthority: Y2E=
    cidr: 10.96.0.0/16
    name: sandbox
  containerd: {}
  instance:
    localStorage: {}
  kubelet:
    config:
      clusterDNS:
      - 10.96.0.10
      maxPods: 58
      registerWithTaints:
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default"
`

const customScript = "#!/bin/bash\necho hello # --node-labels=\"script=yes\"\n"

func karpenterUserData(parts ...string) string {
	var b strings.Builder
	b.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n")
	for _, p := range parts {
		b.WriteString("--//\n" + p + "\n")
	}
	b.WriteString("--//--\n")
	return b.String()
}

func TestUserData(t *testing.T) {
	unregistered := []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
	karpenterLabels := map[string]string{
		"karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true", "karpenter.sh/nodepool": "default",
	}
	withScript := map[string]string{"script": "yes"}
	for k, v := range karpenterLabels {
		withScript[k] = v
	}
	for _, tc := range []struct {
		name, text string
		labels     map[string]string
		taints     []corev1.Taint
		maxPods    int
	}{
		{name: "none", labels: map[string]string{}},
		{
			name:   "Karpenter's NodeConfig in a MIME message",
			text:   karpenterUserData("Content-Type: application/node.eks.aws\n\n" + karpenterNodeConfig),
			labels: karpenterLabels, taints: unregistered, maxPods: 58,
		},
		{
			name: "a script before it",
			text: karpenterUserData(
				"Content-Type: text/x-shellscript; charset=\"us-ascii\"\n\n"+customScript,
				"Content-Type: application/node.eks.aws\n\n"+karpenterNodeConfig),
			labels: withScript, taints: unregistered, maxPods: 58,
		},
		{
			name: "a part in base64",
			text: karpenterUserData("Content-Type: application/node.eks.aws\nContent-Transfer-Encoding: base64\n\n" +
				base64.StdEncoding.EncodeToString([]byte(karpenterNodeConfig))),
			labels: karpenterLabels, taints: unregistered, maxPods: 58,
		},
		{
			name:   "lines that end as on the wire",
			text:   strings.ReplaceAll(karpenterUserData("Content-Type: application/node.eks.aws\n\n"+karpenterNodeConfig), "\n", "\r\n"),
			labels: karpenterLabels, taints: unregistered, maxPods: 58,
		},
		{name: "a NodeConfig and nothing else", text: karpenterNodeConfig, labels: karpenterLabels, taints: unregistered, maxPods: 58},
		{
			name: "a message of one part", text: "Content-Type: application/node.eks.aws\n\n" + karpenterNodeConfig,
			labels: karpenterLabels, taints: unregistered, maxPods: 58,
		},
		{
			name: "of two NodeConfigs the last counts",
			text: karpenterUserData(
				"Content-Type: application/node.eks.aws\n\n"+karpenterNodeConfig,
				"Content-Type: application/node.eks.aws\n\n"+`{"apiVersion":"node.eks.aws/v1alpha1","kind":"NodeConfig","spec":{"kubelet":{
"config":{"maxPods":20,"registerWithTaints":[{"key":"karpenter.sh/unregistered","effect":"NoExecute","value":"x"},{"key":"a","effect":"NoSchedule"}]},
"flags":["--node-labels=karpenter.sh/nodepool=other"]}}}`),
			labels: map[string]string{
				"karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true", "karpenter.sh/nodepool": "other",
			},
			taints: []corev1.Taint{
				{Key: "karpenter.sh/unregistered", Value: "x", Effect: corev1.TaintEffectNoExecute},
				{Key: "a", Effect: corev1.TaintEffectNoSchedule},
			},
			maxPods: 20,
		},
		{
			name:   "a script that starts the kubelet with flags",
			text:   "#!/bin/bash\n/etc/eks/bootstrap.sh c --kubelet-extra-args '--node-labels=team=web,tier=x --register-with-taints=spot=true:NoSchedule --max-pods=30'\n",
			labels: map[string]string{"team": "web", "tier": "x"},
			taints: []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}, maxPods: 30,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readUserData(base64.StdEncoding.EncodeToString([]byte(tc.text)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.labels, got.labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.taints, got.taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if got.maxPods != tc.maxPods {
				t.Errorf("at most %d pods, want %d", got.maxPods, tc.maxPods)
			}
		})
	}
}

func TestUserDataErrorsSayWhatToWrite(t *testing.T) {
	const head = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n"
	for _, tc := range []struct{ name, text, want string }{
		{"a message that ends early", "MIME-Version: 1.0\n", "as a MIME message"},
		{"no type", "MIME-Version: 1.0\n\nx", "its Content-Type"},
		{"no end", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: a/b\n\nx", "as a MIME message"},
		{
			"no YAML", karpenterUserData("Content-Type: application/node.eks.aws\n\n\tspec: ["),
			"reading the NodeConfig in its user data",
		},
		{"an effect that there is not", head + "    config: {registerWithTaints: [{key: a, effect: Never}]}\n", `node taint "a:Never": write key=value:NoSchedule`},
		{"a taint without key", head + "    config: {registerWithTaints: [{effect: NoExecute}]}\n", `write key=value:NoSchedule`},
		{"a label without value", head + "    flags: [--node-labels=team]\n", `node label "team": write key=value`},
		{"half a quantity", head + "    config: {kubeReserved: {cpu: some}}\n", `kubeReserved in the NodeConfig: cpu "some": write a quantity`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readUserData(base64.StdEncoding.EncodeToString([]byte(tc.text)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q in it", err, tc.want)
			}
		})
	}
	if _, err := readUserData("not base64!"); err == nil || !strings.Contains(err.Error(), "reading its user data") {
		t.Errorf("of no base64: %v", err)
	}
}

func TestReservedResourcesAreNotAllocatable(t *testing.T) {
	for _, tc := range []struct{ name, config, cpu, memory, pods string }{
		{"as the image has it", "{}", "1930m", "7518Mi", "29"},
		{"fewer pods", "{maxPods: 8}", "1930m", "7518Mi", "8"},
		{"more of it", "{kubeReserved: {cpu: 500m, memory: 1Gi}, systemReserved: {cpu: 100m, memory: 68Mi}}", "1400m", "7000Mi", "29"},
		{"more than there is", "{systemReserved: {memory: 1Ti}}", "1930m", "0", "29"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := instance(ec2.Running, true)
			in.UserData = base64.StdEncoding.EncodeToString([]byte(
				"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: " + tc.config + "}}\n"))
			n, err := Node(in, Where{})
			if err != nil {
				t.Fatal(err)
			}
			a := n.Status.Allocatable
			if a.Cpu().String() != tc.cpu || a.Memory().String() != tc.memory || a.Pods().String() != tc.pods {
				t.Errorf("allocatable: %s cpu, %s memory, %s pods; want %s, %s, %s", a.Cpu(), a.Memory(), a.Pods(), tc.cpu, tc.memory, tc.pods)
			}
			if c := n.Status.Capacity; c.Cpu().String() != "2" || c.Memory().String() != "8Gi" || c.Pods().String() != tc.pods {
				t.Errorf("capacity: %s cpu, %s memory, %s pods", c.Cpu(), c.Memory(), c.Pods())
			}
		})
	}
}
