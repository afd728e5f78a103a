package history

import (
	"fmt"
	"slices"
	"strings"
)

// yaml writes a workload with its volumes and its budget.
func (w Workload) yaml() string {
	docs := slices.Concat(w.volumes(), []string{strings.Join(w.object(), "\n") + "\n"})
	if w.Budget != "" {
		docs = append(docs, fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %[1]s}\nspec:\n  %[2]s\n  selector: {matchLabels: {app: %[1]s}}\n", w.Name, w.Budget))
	}
	return strings.Join(docs, "---\n")
}

// volumes are the PersistentVolumes that the claims of a StatefulSet bind to. Simulated kubelets mount
// nothing, so each node has them.
func (w Workload) volumes() (docs []string) {
	if !w.Volume {
		return nil
	}
	for i := range w.Replicas {
		docs = append(docs, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]d}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  claimRef: {namespace: default, name: data-%[1]s-%[2]d}
  hostPath: {path: /data/%[1]s-%[2]d}
`, w.Name, i))
	}
	return docs
}

// object is the object of a workload, in lines.
func (w Workload) object() []string {
	if w.Kind == BarePod {
		return append([]string{"apiVersion: v1", "kind: Pod"}, w.pod("")...)
	}
	version := "apps/v1"
	if w.Kind == Job {
		version = "batch/v1"
	}
	lines := []string{"apiVersion: " + version, "kind: " + string(w.Kind), "metadata: {name: " + w.Name + "}", "spec:"}
	if w.Kind == Job {
		lines = append(lines, w.job()...)
	} else {
		lines = append(lines, "  selector: {matchLabels: {app: "+w.Name+"}}")
	}
	if w.Kind == Deployment || w.Kind == StatefulSet {
		lines = append(lines, fmt.Sprintf("  replicas: %d", w.Replicas))
	}
	if w.Kind == StatefulSet {
		lines = append(lines, "  serviceName: "+w.Name, "  podManagementPolicy: Parallel")
	}
	if w.Volume {
		lines = append(lines, "  volumeClaimTemplates:", "  - metadata: {name: data}",
			`    spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}`)
	}
	return append(append(lines, "  template:"), w.pod("    ")...)
}

// job are the fields of a Job that takes no interruption for its own failure, and starts no second pod
// beside one that still stops.
func (w Workload) job() []string {
	lines := []string{
		fmt.Sprintf("  parallelism: %[1]d\n  completions: %[1]d", w.Replicas), "  backoffLimit: 0", "  podReplacementPolicy: Failed",
		"  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}",
	}
	if w.Indexed {
		lines = append(lines, "  completionMode: Indexed")
	}
	return lines
}

// pod is the pod of a workload, or its template.
func (w Workload) pod(indent string) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, indent+fmt.Sprintf(format, args...)) }
	add("metadata:")
	if w.Kind == BarePod {
		add("  name: %s", w.Name)
	}
	add("  labels: {app: %s}", w.Name)
	add("  annotations:")
	add(`    sandbox.lifeboat.dev/start-seconds: "%d"`, w.Start)
	add(`    sandbox.lifeboat.dev/stop-seconds: "%d"`, w.Stop)
	if w.Run > 0 {
		add(`    sandbox.lifeboat.dev/run-seconds: "%d"`, w.Run)
	}
	if w.DoNotDisrupt {
		add(`    karpenter.sh/do-not-disrupt: "true"`)
	}
	add("spec:")
	add("  terminationGracePeriodSeconds: %d", w.Grace)
	if w.Kind == Job {
		add("  restartPolicy: Never")
	}
	if w.Spreads || w.Shares {
		add("  nodeSelector: {karpenter.sh/nodepool: default}")
	}
	if w.Spreads {
		add("  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}", w.Name)
	}
	add("  containers:")
	add("  - name: main")
	add("    image: main")
	add("    resources: {requests: {cpu: 50m, memory: 32Mi}}")
	if w.Volume {
		add("    volumeMounts: [{name: data, mountPath: /data}]")
	}
	return lines
}
