package tracing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of spans.
const (
	spanInterruption = "interruption"
	spanDecide       = "decide"
	spanWait         = "wait"
	spanCordon       = "cordon"
	spanReplace      = "replace"
	spanDrain        = "drain"
	spanHook         = "hook"
	spanPod          = "evict pod"
	spanLifecycle    = "lifecycle hooks"
	spanTerminate    = "terminate"
	spanComplete     = "complete"
)

// The values of attrOutcome.
const (
	outcomeMoved  = "moved"
	outcomeLost   = "lost"
	outcomeStayed = "stayed"
)

// attribute is the name of an attribute. Those without the prefix lifeboat are of the semantic
// conventions of OpenTelemetry.
type attribute string

const (
	attrNode      attribute = "k8s.node.name"
	attrNamespace attribute = "k8s.namespace.name"
	attrPod       attribute = "k8s.pod.name"
	attrInstance  attribute = "host.id"

	attrName            attribute = "lifeboat.interruption"
	attrKind            attribute = "lifeboat.kind"
	attrPhase           attribute = "lifeboat.phase"
	attrDrill           attribute = "lifeboat.drill"
	attrDeadline        attribute = "lifeboat.deadline"
	attrDeadlineType    attribute = "lifeboat.deadline.type"
	attrPods            attribute = "lifeboat.pods.total"
	attrPodsMoved       attribute = "lifeboat.pods.moved"
	attrPodsLost        attribute = "lifeboat.pods.lost"
	attrPodsWithoutSpan attribute = "lifeboat.pods.without_span"
	attrAction          attribute = "lifeboat.action"
	attrPolicy          attribute = "lifeboat.policy"
	attrRule            attribute = "lifeboat.rule"
	attrStrategy        attribute = "lifeboat.strategy"
	attrReason          attribute = "lifeboat.reason"
	attrMessage         attribute = "lifeboat.message"
	attrWaitsFor        attribute = "lifeboat.waits_for"
	attrOutcome         attribute = "lifeboat.pod.outcome"
	attrGrace           attribute = "lifeboat.pod.grace_seconds"
	attrLastCall        attribute = "lifeboat.pod.last_call"
	attrOverridden      attribute = "lifeboat.pod.protection_overridden"
	attrSurged          attribute = "lifeboat.pod.surged"
	attrReplacement     attribute = "lifeboat.replacement"
	attrTries           attribute = "lifeboat.tries"
	attrHook            attribute = "lifeboat.hook"
	attrGroup           attribute = "aws.autoscaling.group"
	attrHeartbeats      attribute = "lifeboat.heartbeats"
	attrBy              attribute = "lifeboat.terminated_by"
	attrNodeClaim       attribute = "karpenter.nodeclaim"
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timeOr is a time of the API, or otherwise if it is nil.
func timeOr(t *metav1.MicroTime, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return t.Time
}
