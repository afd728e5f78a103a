//go:build e2e

package chart_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// This file says in Go what each admission policy of the chart must accept. It compares two
// objects, and shares no code with the policies.

// author is a user who writes, and what roles and token say about the user.
type author struct {
	user string
	// node and nodeUID are the claims of an agent's token.
	node, nodeUID string
	// writesNotices and requests are the permissions that the policy of Interruptions asks for.
	writesNotices, requests bool
	client                  client.Client
}

const (
	controllerUser = "system:serviceaccount:lifeboat-system:lifeboat-controller"
	agentUser      = "system:serviceaccount:lifeboat-system:lifeboat-agent"
	karpenterUser  = "system:serviceaccount:kube-system:karpenter"
)

var same = equality.Semantic.DeepEqual

// sameTies reports whether two versions of an object have the same finalizers and owners.
func sameTies(before, after client.Object) bool {
	return same(before.GetFinalizers(), after.GetFinalizers()) && same(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// changedKeys are the keys that two maps do not have in common.
func changedKeys(before, after map[string]string) (keys []string) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, after)
	for key := range all {
		was, had := before[key]
		is, has := after[key]
		if had != has || was != is {
			keys = append(keys, key)
		}
	}
	return keys
}

func onlyOf(keys []string, allowed ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool {
		return !strings.HasPrefix(k, "lifeboat.dev/") && !slices.Contains(allowed, k)
	})
}

func mayChangePod(by author, before, after *corev1.Pod) bool {
	return by.user != controllerUser || sameTies(before, after) && same(before.Spec, after.Spec) &&
		onlyOf(changedKeys(before.Annotations, after.Annotations)) &&
		onlyOf(changedKeys(before.Labels, after.Labels), "pod-template-hash")
}

func mayChangeNode(by author, before, after *corev1.Node) bool {
	return by.user != controllerUser || sameTies(before, after) && same(withoutOwn(before.Spec), withoutOwn(after.Spec)) &&
		onlyOf(changedKeys(before.Annotations, after.Annotations), "karpenter.sh/do-not-disrupt") &&
		onlyOf(changedKeys(before.Labels, after.Labels), "node.kubernetes.io/exclude-from-external-load-balancers")
}

// withoutOwn returns what Lifeboat must leave as it is.
func withoutOwn(spec corev1.NodeSpec) corev1.NodeSpec {
	spec.Unschedulable = false
	var others []corev1.Taint
	for _, t := range spec.Taints {
		if !strings.HasPrefix(t.Key, "lifeboat.dev/") {
			others = append(others, t)
		}
	}
	spec.Taints = others
	return spec
}

func mayRunJob(by author, job *batchv1.Job) bool {
	pod, template := job.Spec.Template.Spec, job.Spec.Template
	if by.user != controllerUser {
		return true
	}
	// The API server ignores the deprecated field if the other one is set.
	if account := cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount); account == "lifeboat-controller" || account == "lifeboat-agent" {
		return false
	}
	for _, labels := range []map[string]string{job.Labels, template.Labels} {
		for label := range labels {
			if strings.HasPrefix(label, "app.kubernetes.io/") {
				return false
			}
		}
	}
	if pod.HostIPC || pod.HostNetwork || pod.HostPID || job.Namespace != hookNamespace {
		return false
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			return false
		}
	}
	if s := pod.SecurityContext; s != nil && s.WindowsOptions != nil && isTrue(s.WindowsOptions.HostProcess) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), reachesHost)
}

func isTrue(b *bool) bool { return b != nil && *b }

func reachesHost(c corev1.Container) bool {
	for _, p := range c.Ports {
		if p.HostPort != 0 {
			return true
		}
	}
	s := c.SecurityContext
	return s != nil && (isTrue(s.Privileged) || s.Capabilities != nil && len(s.Capabilities.Add) > 0 ||
		s.WindowsOptions != nil && isTrue(s.WindowsOptions.HostProcess))
}

// mayWriteNodeNotice also says what the CRD accepts. before is nil for a new one.
func mayWriteNodeNotice(by author, before, after *v1beta1.NodeNotice) bool {
	if before == nil {
		before = &v1beta1.NodeNotice{}
	}
	if by.user == agentUser && (by.node == "" || by.node != after.Name || by.nodeUID != "" && by.nodeUID != after.Spec.NodeUID ||
		!sameTies(before, after) || len(changedKeys(before.Labels, after.Labels)) > 0 || len(changedKeys(before.Annotations, after.Annotations)) > 0) {
		return false
	}
	return strings.HasPrefix(after.Spec.InstanceID, "i-0") && len(after.Spec.Notices) <= 8 &&
		!slices.ContainsFunc(after.Spec.Notices, func(n v1beta1.MetadataNotice) bool { return !isMetadata(n) })
}

func isMetadata(n v1beta1.MetadataNotice) bool {
	hasDeadline := map[string]bool{"SpotInterruption": true, "ScheduledChange": true, "RebalanceRecommendation": false, "AutoScalingTermination": false}
	mayHave, known := hasDeadline[n.Kind]
	return known && (mayHave || n.Deadline == nil) && (n.Kind != "ScheduledChange" || n.Deadline != nil || n.Withdrawn) &&
		strings.HasPrefix(n.ID, "imds/") && len(n.ID) <= 128 && len(n.Description) <= 512
}

// mayWriteInterruption judges a new Interruption if before is nil.
func mayWriteInterruption(by author, before, after *v1beta1.Interruption) bool {
	isNew := before == nil
	if isNew {
		before = &v1beta1.Interruption{}
	}
	was, is := before.Spec, after.Spec
	for _, action := range [][2]*v1beta1.UserAction{{was.Approval, is.Approval}, {was.Hold, is.Hold}, {was.Released, is.Released}} {
		if action[1] != nil && !same(action[0], action[1]) && action[1].By != by.user {
			return false
		}
	}
	if by.writesNotices || by.user == controllerUser {
		return true
	}
	if !isNew && (was.InstanceID != is.InstanceID || was.NodeName != is.NodeName || was.NodeUID != is.NodeUID) {
		return false
	}
	if !sameTies(before, after) {
		return false
	}
	return !isNew && same(was.Notices, is.Notices) || by.requests && onlyOwnRequests(by.user, was.Notices, is.Notices)
}

func onlyOwnRequests(user string, before, after []v1beta1.Notice) bool {
	known := map[string]v1beta1.Notice{}
	for _, n := range before {
		known[n.ID] = n
	}
	for _, n := range after {
		was, had := known[n.ID]
		delete(known, n.ID)
		switch {
		case had && same(was, n):
		case had && !mayWithdraw(was, n), !had && !isOwnRequest(user, n):
			return false
		}
	}
	return len(known) == 0
}

// mayWithdraw reports whether the only difference is that a person's request is withdrawn.
func mayWithdraw(was, is v1beta1.Notice) bool {
	was.Withdrawn = true
	return was.Kind == "Requested" && was.Source == "user" && same(was, is)
}

// isOwnRequest reports whether a notice has nothing but what `lifeboat drain` writes.
func isOwnRequest(user string, n v1beta1.Notice) bool {
	own := n.Description == "requested by "+user || strings.HasPrefix(n.Description, "requested by "+user+": ")
	want := v1beta1.Notice{
		ID: n.ID, Kind: "Requested", Source: "user", Time: n.Time, ReceivedTime: n.ReceivedTime, Subject: n.Subject,
		Deadline: n.Deadline, Description: n.Description,
	}
	return own && same(want, n) && (n.Deadline == nil || n.Deadline.Type == v1beta1.DeadlineEstimated)
}

// mayWritePause also says what the CRD accepts. before is nil for a new one.
func mayWritePause(by author, before, after *v1beta1.Pause) bool {
	name := "cluster"
	if after.Spec.NodePool != "" {
		name = "nodepool-" + after.Spec.NodePool
	}
	own := after.Spec.By == by.user || before != nil && same(before.Spec, after.Spec)
	return own && len(after.Finalizers) == 0 && len(after.OwnerReferences) == 0 && after.Name == name &&
		after.Spec.Until.Sub(after.Spec.StartTime.Time) <= 24*time.Hour && (before == nil || before.Spec.NodePool == after.Spec.NodePool)
}

// guardHolds reports whether Karpenter may not end a NodeClaim for an interruption at a time. An
// unreadable NodeClaim must not stop Karpenter.
func guardHolds(claim *unstructured.Unstructured, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, claim.GetAnnotations()[v1beta1.AnnotationGuardedUntil])
	return err == nil && until.After(now)
}

func mayDeleteClaim(by author, claim *unstructured.Unstructured, now time.Time) bool {
	has := func(condition string) bool {
		conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			entry, _ := c.(map[string]any)
			return entry["type"] == condition && entry["status"] == "True"
		})
	}
	if by.user != karpenterUser || !guardHolds(claim, now) || has("DisruptionReason") || !has("Registered") {
		return true
	}
	after, _, _ := unstructured.NestedString(claim.Object, "spec", "expireAfter")
	if after == "Never" || after == "" {
		return false
	}
	life, err := time.ParseDuration(after)
	return err != nil || !claim.GetCreationTimestamp().Add(life).After(now)
}

func mayUpdateClaim(by author, before, after *unstructured.Unstructured, now time.Time) bool {
	was, had := before.GetAnnotations()[termination]
	is, has := after.GetAnnotations()[termination]
	return by.user != karpenterUser || !guardHolds(before, now) || had == has && was == is
}
