package drain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxSelectorSize bounds the selector of a PodDisruptionBudget, in bytes. A usual one has
	// less than 200. A person who may create budgets could write a megabyte.
	maxSelectorSize = 4 << 10
	// maxNamespaceSize bounds the budgets of a namespace, in bytes. Each counts baseSize and its
	// selector, so about 1,000 usual ones fit. It bounds the time to match them with pods.
	maxNamespaceSize = 512 << 10
	baseSize         = 256
	// stringSize is what a value costs in addition to its text: the header of a Go string.
	stringSize = 16
)

// Budget is what a plan reads of a PodDisruptionBudget, and nothing else. A change that leaves it
// equal changes no plan. It is never modified after it was shared.
type Budget struct {
	Namespace, Name string
	UID             types.UID
	// Selector is the parsed selector.
	Selector labels.Selector
	// AlwaysAllow is set if pods that are not Ready may always be evicted.
	AlwaysAllow bool
	// Outdated is set if the disruption controller has not seen the latest spec.
	Outdated bool

	DisruptionsAllowed, CurrentHealthy, DesiredHealthy, ExpectedPods int32

	// Unseen is the number of evictions that the disruption controller has not seen yet.
	Unseen int
	// SyncFailed says why the disruption controller cannot compute the budget; or is empty.
	SyncFailed string
	// Unread says why Lifeboat does not read the budget; or is empty. Such a budget covers all
	// pods of its namespace and allows no disruption.
	Unread string

	size int
}

// NewBudget reads a PodDisruptionBudget. As for the API server, a malformed or missing selector
// selects no pod, and an empty one all pods.
func NewBudget(pdb *policyv1.PodDisruptionBudget) *Budget {
	b := &Budget{
		Namespace: pdb.Namespace, Name: pdb.Name, UID: pdb.UID,
		AlwaysAllow:        pdb.Spec.UnhealthyPodEvictionPolicy != nil && *pdb.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
		Outdated:           pdb.Status.ObservedGeneration < pdb.Generation,
		DisruptionsAllowed: pdb.Status.DisruptionsAllowed, CurrentHealthy: pdb.Status.CurrentHealthy,
		DesiredHealthy: pdb.Status.DesiredHealthy, ExpectedPods: pdb.Status.ExpectedPods,
		Unseen: len(pdb.Status.DisruptedPods),
	}
	c := meta.FindStatusCondition(pdb.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
		b.SyncFailed = brief(c.Message)
	}
	size := selectorSize(pdb.Spec.Selector)
	b.size = baseSize + size
	if size > maxSelectorSize {
		b.size = baseSize
		b.unread(fmt.Sprintf("its selector has %d bytes, of which Lifeboat reads at most %d", size, maxSelectorSize))
		return b
	}
	var err error
	if b.Selector, err = metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err != nil {
		b.Selector = labels.Nothing()
	}
	return b
}

// Equal reports whether two budgets are the same for every plan.
func (b *Budget) Equal(other *Budget) bool { return reflect.DeepEqual(b, other) }

// Covers reports whether the budget selects the pod.
func (b *Budget) Covers(pod *corev1.Pod) bool {
	return b.Namespace == pod.Namespace && b.Selector.Matches(labels.Set(pod.Labels))
}

func (b *Budget) unread(why string) {
	b.Selector, b.Unread = labels.Everything(), why+"; it counts as one that covers all pods of the namespace"
}

func selectorSize(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	size := 0
	for key, value := range s.MatchLabels {
		size += len(key) + len(value) + 2*stringSize
	}
	for _, e := range s.MatchExpressions {
		size += len(e.Key) + stringSize
		for _, value := range e.Values {
			size += len(value) + stringSize
		}
	}
	return size
}

// readable returns the budgets of one namespace as they are planned with. If Lifeboat does not
// read all of them, it is one budget that covers all pods, so that the cost of a plan does
// not depend on what a tenant wrote.
func readable(budgets []*Budget) []*Budget {
	if tooMany(budgets) {
		all := *slices.MinFunc(budgets, byName)
		all.unread(fmt.Sprintf("namespace %s has %d budgets, more than Lifeboat reads", all.Namespace, len(budgets)))
		return []*Budget{&all}
	}
	var unread *Budget
	for _, b := range budgets {
		if b.Unread != "" && (unread == nil || byName(b, unread) < 0) {
			unread = b
		}
	}
	if unread != nil {
		return []*Budget{unread}
	}
	return budgets
}

// tooMany reports whether Lifeboat reads none of a namespace's budgets.
func tooMany(budgets []*Budget) bool {
	size := 0
	for _, b := range budgets {
		size += b.size
	}
	return size > maxNamespaceSize
}

// Unread returns how many budgets of one namespace Lifeboat does not read.
func Unread(budgets []*Budget) int {
	if tooMany(budgets) {
		return len(budgets)
	}
	unread := 0
	for _, b := range budgets {
		if b.Unread != "" {
			unread++
		}
	}
	return unread
}

func byName(a, b *Budget) int { return strings.Compare(a.Name, b.Name) }
