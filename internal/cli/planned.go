package cli

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/drain/simulate"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// planned is the output of `plan`.
type planned struct {
	Node       string `json:"node"`
	InstanceID string `json:"instanceID,omitempty"`
	// Supposed is true if the notice is hypothetical.
	Supposed      bool              `json:"supposed"`
	Kind          string            `json:"kind,omitempty"`
	EventTypeCode string            `json:"eventTypeCode,omitempty"`
	Decision      v1beta1.Decision  `json:"decision"`
	Deadline      *v1beta1.Deadline `json:"deadline,omitempty"`
	// ownDeadline is set if Lifeboat, not the cloud, terminates the instance at
	// the deadline.
	ownDeadline bool
	// doNotDisrupt is how the policy treats do-not-disrupt.
	doNotDisrupt v1beta1.DoNotDisrupt
	// Begins is when the drain starts, if not now.
	Begins *time.Time `json:"begins,omitempty"`
	// AwaitsApproval is true if a person must approve first and has not.
	// Approval describes the state of the approval.
	AwaitsApproval bool   `json:"awaitsApproval,omitempty"`
	Approval       string `json:"approval,omitempty"`
	// Waits lists what all pods wait for: a queue, a hold, hooks.
	Waits []string `json:"waits,omitempty"`
	// Replacement says what is ordered, and when it is expected to be Ready; empty: nothing is known.
	Replacement string `json:"replacement,omitempty"`
	// Unreachable says why no notice can reach the node; empty: notices reach it.
	Unreachable string `json:"unreachable,omitempty"`
	// Karpenter are the settings of its NodeClaim and NodePool; nil: it is not Karpenter's.
	Karpenter *karpenterSettings `json:"karpenter,omitempty"`
	// Fits is true if every pod leaves with its whole grace period before the
	// deadline.
	Fits bool         `json:"fits"`
	Pods []plannedPod `json:"pods"`
	// Fix says how to make the pods fit, if they do not.
	Fix []string `json:"fix,omitempty"`
}

// plannedPod is the prediction for one pod. Times are relative to now.
type plannedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is the controller of the pod, such as Deployment web; empty: it has none.
	Workload string     `json:"workload,omitempty"`
	Step     drain.Step `json:"step"`
	Reason   string     `json:"reason"`
	// Now is the reason at the start, if it differs from Reason.
	Now                string   `json:"now,omitempty"`
	AskedInSeconds     *float64 `json:"askedInSeconds,omitempty"`
	GoneInSeconds      *float64 `json:"goneInSeconds,omitempty"`
	LastCallInSeconds  *float64 `json:"lastCallInSeconds,omitempty"`
	GraceSeconds       float64  `json:"graceSeconds"`
	WantedGraceSeconds float64  `json:"wantedGraceSeconds"`
	Overrides          string   `json:"overrides,omitempty"`
	Fits               bool     `json:"fits"`
	// Fix says how to make the pod fit, if it does not.
	Fix string `json:"fix,omitempty"`
}

func (p *planned) add(f simulate.PodOutcome, now time.Time) {
	pod := plannedPod{
		Namespace: f.Pod.Namespace, Name: f.Pod.Name, Workload: workloadOf(f.Pod), Step: f.Step, Reason: f.Reason,
		AskedInSeconds:     secondsFrom(f.Asked, now),
		GoneInSeconds:      secondsFrom(f.Gone, now),
		LastCallInSeconds:  secondsFrom(f.LastCall, now),
		GraceSeconds:       f.Grace.Seconds(),
		WantedGraceSeconds: f.Wants.Seconds(),
		Overrides:          f.Overrides,
		Fits:               f.Fits,
	}
	if f.Now.Reason != f.Reason {
		pod.Now = f.Now.Reason
	}
	p.Pods = append(p.Pods, pod)
	p.Fits = p.Fits && f.Fits
}

// workloadOf names the controller of a pod. The pods of a Deployment have its name and the hash of
// their template in the name of their ReplicaSet.
func workloadOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return ""
	}
	if name, ok := strings.CutSuffix(owner.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]); ok && owner.Kind == "ReplicaSet" {
		return "Deployment " + name
	}
	return owner.Kind + " " + owner.Name
}

// secondsFrom returns a time in seconds from now, or nil if it is zero.
func secondsFrom(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Sub(now).Round(time.Millisecond).Seconds()
	return &seconds
}

// advise adds to each pod that does not fit what would help.
func (p *planned) advise(d policy.Decision, begins time.Time) {
	for i := range p.Pods {
		if pod := &p.Pods[i]; !pod.Fits {
			pod.Fix = pod.fix(d, begins)
		}
	}
}

func (p *plannedPod) fix(d policy.Decision, begins time.Time) string {
	switch {
	case d.InstanceGone:
		return "the instance no longer runs, so there is no time left"
	case isHard(d.Deadline) && !d.Deadline.Time.After(begins):
		return "the deadline has passed, so there is no time left"
	case p.GoneInSeconds != nil && p.GraceSeconds < p.WantedGraceSeconds:
		return fmt.Sprintf("its grace period is %s and it gets %s: lower its terminationGracePeriodSeconds, or schedule it on other nodes",
			terminal.Duration(seconds(p.WantedGraceSeconds)), terminal.Duration(seconds(p.GraceSeconds)))
	case p.GoneInSeconds != nil:
		return "it leaves after the deadline: start earlier (notBefore), or lower the grace period of the pods that leave before it"
	case p.Step == drain.StepStays:
		return "its workload has the strategy Never in the policy: change that if the pod should move"
	case d.DoNotDisrupt == v1beta1.DoNotDisruptRespect:
		return "it never leaves: remove what blocks it, or set doNotDisrupt: UntilLastCall in the policy"
	}
	return "it never leaves: remove what it waits for"
}
