package judge

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Names that the documentation promises. The judge states them itself: it must notice a change.
const (
	taintInterrupted   = "lifeboat.dev/interrupted"
	ownPrefix          = "lifeboat.dev/"
	labelNoBalancer    = "node.kubernetes.io/exclude-from-external-load-balancers"
	annotationProtect  = "karpenter.sh/do-not-disrupt"
	annotationMirror   = "kubernetes.io/config.mirror"
	claimInterruption  = "lifeboat.dev/interruption"
	reasonOverride     = "ProtectionOverridden"
	conditionDisrupted = "DisruptionTarget"
	kindSpot           = "SpotInterruption"
	defaultGracePeriod = 30 * time.Second
)

// meta has the metadata that the judge reads.
type meta struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
	Finalizers           []string
	OwnerReferences      []owner
	CreationTimestamp    time.Time // in whole seconds
	DeletionTimestamp    *time.Time
	DeletionGrace        *int64 `json:"deletionGracePeriodSeconds"`
}

// owner is an object that owns another one.
type owner struct{ Kind, Name, UID string }

// condition is an entry of status.conditions.
type condition struct{ Type, Status, Reason string }

func isTrue(all []condition, of string) bool {
	return slices.ContainsFunc(all, func(c condition) bool { return c.Type == of && c.Status == "True" })
}

// podObject is a Pod.
type podObject struct {
	Kind     string
	Metadata meta
	Spec     struct {
		NodeName string
		Grace    *int64 `json:"terminationGracePeriodSeconds"`
	}
	Status struct {
		Phase      string
		Conditions []condition
	}
}

// jobObject is a Job.
type jobObject struct {
	Metadata meta
	Spec     struct {
		PodFailurePolicy *struct {
			Rules []struct {
				Action          string
				OnPodConditions []condition
			}
		}
	}
	Status struct{ Conditions []condition }
}

// ignoresDisruption reports whether the Job counts no pod as failed that a disruption ended.
func (j *jobObject) ignoresDisruption() bool {
	if j.Spec.PodFailurePolicy == nil {
		return false
	}
	for _, rule := range j.Spec.PodFailurePolicy.Rules {
		for _, c := range rule.OnPodConditions {
			if c.Type == conditionDisrupted {
				return rule.Action == "Ignore" // the first rule that matches decides
			}
		}
	}
	return false
}

// taint is a taint of a node.
type taint struct{ Key, Value, Effect string }

// nodeObject is a Node.
type nodeObject struct {
	Metadata meta
	Spec     struct {
		ProviderID    string
		Unschedulable bool
		Taints        []taint
	}
}

// deadline is when the instance will be gone.
type deadline struct {
	Time time.Time
	Type string
}

func (d *deadline) firm() bool { return d != nil && d.Type != "Soft" }

// record is an Interruption.
type record struct {
	Metadata meta
	Spec     struct {
		InstanceID string
		Notices    []struct {
			ID, Kind           string
			Drill, EndInstance bool
			Withdrawn          bool
		}
	}
	Status struct {
		Phase          string
		CompletionTime *time.Time
		Deadline       *deadline
		Decision       *struct{ Action string }
		Timeline       []struct{ Reason, Message string }
		Drain          *struct {
			Pods        []recordedPod
			Replacement *struct{ Group string }
		}
	}
}

// recordedPod is a pod in a record.
type recordedPod struct {
	Namespace, Name, UID, State string
	DepartureTime               *time.Time
}

// pending are the pods that a record says are still there.
func (r *record) pending() []recordedPod {
	if r.Status.Drain == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Status.Drain.Pods), func(p recordedPod) bool { return p.State == "Left" || p.DepartureTime != nil })
}

// drains reports whether the decision lets pods leave.
func (r *record) drains() bool {
	d := r.Status.Decision
	return d != nil && (d.Action == "Drain" || d.Action == "Terminate")
}

// isDrill reports whether all notices are drills that do not end the instance.
func (r *record) isDrill() bool {
	for _, n := range r.Spec.Notices {
		if !n.Drill || n.EndInstance {
			return false
		}
	}
	return len(r.Spec.Notices) > 0
}

func (r *record) finished() bool { return r.Status.CompletionTime != nil }

func (r *record) detached() bool {
	return r.Status.Drain != nil && r.Status.Drain.Replacement != nil && r.Status.Drain.Replacement.Group != ""
}

// claimObject is a NodeClaim.
type claimObject struct {
	Metadata meta
	Status   struct{ ProviderID, NodeName string }
}

// budgetObject is a PodDisruptionBudget.
type budgetObject struct {
	Metadata meta
	Spec     struct{ Selector *selector }
}

// selector is a label selector. The judge reads matchLabels only; a budget with expressions covers
// no pod for it, so that it reports nothing that it does not understand.
type selector struct {
	MatchLabels      map[string]string
	MatchExpressions []json.RawMessage
}

func (s *selector) matches(labels map[string]string) bool {
	if s == nil || len(s.MatchExpressions) > 0 {
		return false
	}
	for k, v := range s.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// instanceOf returns the instance of a provider ID, such as aws:///us-east-1a/i-0123.
func instanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
