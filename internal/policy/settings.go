package policy

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// longestName bounds the names of hooks and notifications, and mostRetries the retries of a
// hook; the CRD has the same bounds.
const (
	longestName = 30
	mostRetries = 10
)

// checkSettings checks the parts of a policy outside of its rules.
func checkSettings(spec v1beta1.InterruptionPolicySpec) problems {
	var found problems
	for i, w := range spec.Workloads {
		found.at(entry("workloads", i, w.Name), checkWorkload(w))
	}
	if spec.Budget != nil {
		found.at("budget", checkLimit(spec.Budget.MaxConcurrent))
	}
	if spec.Terminations != nil {
		found.at("terminations", checkLimit(spec.Terminations.MaxConcurrent))
	}
	if wait := spec.WaitForDeregistration; wait != nil && (wait.Duration < time.Second || wait.Duration > time.Hour) {
		found.add(deregistrationRange)
	}
	seen := map[string]bool{}
	for i, h := range spec.Hooks {
		path := entry("hooks", i, h.Name)
		found.at(path, checkName(h.Name, seen))
		found.at(path, checkHook(h))
	}
	seen = map[string]bool{}
	for i, n := range spec.Notifications {
		path := entry("notifications", i, n.Name)
		found.at(path, checkName(n.Name, seen))
		found.at(path, checkReasons(n.Reasons))
		for _, problem := range hooks.CheckWebhook(n.Webhook) {
			found.at(path, []string{"webhook." + problem})
		}
	}
	return found
}

func checkWorkload(w v1beta1.Workload) problems {
	var found problems
	if len(w.Namespaces) == 0 && w.Selector == nil && len(w.MatchOwnerKinds) == 0 {
		found.add(workloadForNone)
	}
	if w.Order == "" && w.Strategy == "" {
		found.add(workloadNoTreat)
	}
	for _, namespace := range w.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			found.add(workloadNamespace, namespace)
		}
	}
	if w.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(w.Selector); err != nil {
			found.add(workloadSelector, err)
		}
	}
	if slices.Contains(w.MatchOwnerKinds, "") {
		found.add(workloadEmptyOwner)
	}
	among(&found, w.Order, workloadOrder, "", v1beta1.OrderFirst, v1beta1.OrderNormal, v1beta1.OrderLast)
	among(&found, w.Strategy, workloadStrategy, "", v1beta1.StrategyEvict, v1beta1.StrategySurge, v1beta1.StrategyNever)
	return found
}

// checkLimit takes a number, or a percentage such as 20%.
func checkLimit(limit intstr.IntOrString) problems {
	var found problems
	// The string is checked too: IntOrString would accept "+20%".
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, 100, true)
	digits := strings.Trim(limit.StrVal, "0123456789")
	if err != nil || n < 1 || limit.Type == intstr.String && (n > 100 || digits != "%" || strings.HasPrefix(limit.StrVal, "0")) {
		found.add(limitNotOne)
	}
	return found
}

func checkHook(h v1beta1.Hook) problems {
	var found problems
	if h.Retries < 0 || h.Retries > mostRetries {
		found.add(retriesRange, h.Retries)
	}
	if h.Job != nil && h.Job.Namespace != "" && len(validation.IsDNS1123Label(h.Job.Namespace)) > 0 {
		found.add(jobNamespace, h.Job.Namespace)
	}
	return append(found, hooks.Check(h)...)
}

func checkName(name string, seen map[string]bool) problems {
	var found problems
	if len(name) > longestName || len(validation.IsDNS1123Label(name)) > 0 {
		found.add(badName, name)
	}
	if seen[name] {
		found.add(sameName, name)
	}
	seen[name] = true
	return found
}

func checkReasons(on []string) problems {
	var found problems
	for _, reason := range on {
		if reason != "*" && !slices.Contains(TimelineReasons(), reason) {
			found.add(unknownReason, reason, strings.Join(TimelineReasons(), ", ")+`, or "*" for all`)
		}
	}
	return found
}

// TimelineReasons returns the reasons that an entry of an Interruption's
// timeline can have, which are those that a notification can be on, sorted.
func TimelineReasons() []string {
	return []string{
		v1beta1.ReasonApproved, v1beta1.ReasonAwaitingApproval, v1beta1.ReasonCompleted, v1beta1.ReasonContradicted, v1beta1.ReasonCordoned,
		v1beta1.ReasonDecided, v1beta1.ReasonDeleted, v1beta1.ReasonDeregistered, v1beta1.ReasonDeregistrationTimedOut, v1beta1.ReasonDeregistrationUnknown,
		v1beta1.ReasonDetached, v1beta1.ReasonDrained, v1beta1.ReasonEvicted,
		v1beta1.ReasonEvictionBlocked, v1beta1.ReasonHookFailed, v1beta1.ReasonHookStarted, v1beta1.ReasonHookSucceeded,
		v1beta1.ReasonInvalid, v1beta1.ReasonLifecycleActionSent, v1beta1.ReasonLifecycleHookCompleted,
		v1beta1.ReasonLifecycleHookNotManaged, v1beta1.ReasonLifecycleHookPending, v1beta1.ReasonMarkedAtRisk,
		v1beta1.ReasonNodeClaimDeleted, v1beta1.ReasonNodeConflict, v1beta1.ReasonNodeDeleted, v1beta1.ReasonNodeRestored, v1beta1.ReasonNotReplaced,
		v1beta1.ReasonNoticeHandled, v1beta1.ReasonNoticeReceived, v1beta1.ReasonNotifyFailed, v1beta1.ReasonOnHold,
		v1beta1.ReasonPaused, v1beta1.ReasonPodLost, v1beta1.ReasonPodTerminated, v1beta1.ReasonPostponed, v1beta1.ReasonProtectionOverridden,
		v1beta1.ReasonQueued, v1beta1.ReasonReleased, v1beta1.ReasonReopened, v1beta1.ReasonReplacementFailed,
		v1beta1.ReasonReplacementOrdered, v1beta1.ReasonReplacementReady, v1beta1.ReasonReplacementReleased, v1beta1.ReasonResumed,
		v1beta1.ReasonSurgeReverted, v1beta1.ReasonSurged, v1beta1.ReasonTerminated, v1beta1.ReasonUnconfirmed, v1beta1.ReasonWithdrawn,
	}
}
