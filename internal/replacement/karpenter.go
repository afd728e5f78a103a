package replacement

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Karpenter's names (Karpenter documentation, "Well-Known Labels, Annotations,
// and Resource Names"). Its types are not imported: Lifeboat needs a dozen
// fields, which the v1 API keeps stable.
const (
	Group   = "karpenter.sh"
	Version = "v1"
	// LabelNodePool on a Node or NodeClaim names its NodePool.
	LabelNodePool = "karpenter.sh/nodepool"
	// AnnotationTermination on a deleting NodeClaim is the RFC 3339 time at
	// which Karpenter removes its pods regardless of PodDisruptionBudgets.
	AnnotationTermination = "karpenter.sh/nodeclaim-termination-timestamp"

	annotationHash        = "karpenter.sh/nodepool-hash"
	annotationHashVersion = "karpenter.sh/nodepool-hash-version"
	labelCapacityType     = "karpenter.sh/capacity-type"
	labelRegistered       = "karpenter.sh/registered"
	taintDisrupted        = "karpenter.sh/disrupted"

	// GroupAWS and KindAWS are those of the NodeClass of Karpenter for AWS.
	GroupAWS = "karpenter.k8s.aws"
	KindAWS  = "EC2NodeClass"
)

// Kinds of Karpenter's API.
var (
	KindNodeClaim    = schema.GroupVersionKind{Group: Group, Version: Version, Kind: "NodeClaim"}
	KindNodePool     = schema.GroupVersionKind{Group: Group, Version: Version, Kind: "NodePool"}
	KindEC2NodeClass = schema.GroupVersionKind{Group: GroupAWS, Version: Version, Kind: KindAWS}
)

// IsKarpenters reports whether the labels of a Node say that Karpenter launched
// it.
func IsKarpenters(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	return node.Labels[LabelNodePool] != "" || node.Labels[labelRegistered] != ""
}

// ClaimName returns the name of the NodeClaim that owns a Node; empty: it has none.
func ClaimName(node *corev1.Node) string {
	for _, owner := range node.OwnerReferences {
		if owner.Kind == KindNodeClaim.Kind {
			return owner.Name
		}
	}
	return ""
}

// Claim holds the fields of a NodeClaim that Lifeboat reads.
type Claim struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
	Annotations     map[string]string
	Deleting        bool
	// DeletionTime is when it was deleted; zero: it was not.
	DeletionTime time.Time
	// TerminationGracePeriod is how long Karpenter's own drain may take after the deletion;
	// nil: as long as it needs.
	TerminationGracePeriod *time.Duration
	// Launched is set once it has an instance.
	Launched bool
	// Initialized is set once its node is Ready with all requested resources.
	Initialized bool
	// CreationTime is when it was created, and BootTime is how long it then took until it was
	// Initialized; zero: it is not.
	CreationTime time.Time
	BootTime     time.Duration
	NodeName     string
	// InstanceID is the id of its instance, or empty.
	InstanceID string
	// Requests are the requested resources.
	Requests corev1.ResourceList
}

// Pool returns the name of its NodePool, or empty for a standalone NodeClaim.
func (c *Claim) Pool() string { return c.Labels[LabelNodePool] }

// Replaces returns the id of the instance that it replaces, or empty.
func (c *Claim) Replaces() string { return c.Labels[v1beta1.LabelReplacesInstance] }

// Class holds the fields of a NodeClass that Lifeboat reads.
type Class struct{ Ready bool }

// Pool holds the fields of a NodePool that Lifeboat reads.
type Pool struct {
	Name        string
	UID         types.UID
	Annotations map[string]string
	Deleting    bool
	// Static is true if it has a fixed number of nodes.
	Static bool
	// Ready is false only if the condition Ready is False.
	Ready     bool
	Limits    corev1.ResourceList
	Resources corev1.ResourceList
	// Budgets limit Karpenter's voluntary disruption of its nodes.
	Budgets []DisruptionBudget
	// ClassGroup, ClassKind and ClassName are those of the NodeClass.
	ClassGroup, ClassKind, ClassName string

	labels, annotations map[string]string // of the template
	spec                map[string]any    // of the template
	requirements        []requirement     // of the template
}

// ReadClaim decodes a NodeClaim.
func ReadClaim(u *unstructured.Unstructured) (*Claim, error) {
	var raw struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Resources              corev1.ResourceRequirements `json:"resources"`
			TerminationGracePeriod string                      `json:"terminationGracePeriod"`
		} `json:"spec"`
		Status struct {
			ProviderID string             `json:"providerID"`
			NodeName   string             `json:"nodeName"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &raw); err != nil {
		return nil, fmt.Errorf("reading NodeClaim: %w", err)
	}
	m := raw.Metadata
	c := &Claim{
		Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, Annotations: m.Annotations,
		Deleting: m.DeletionTimestamp != nil, Launched: raw.Status.ProviderID != "", NodeName: raw.Status.NodeName,
		InstanceID: instanceOf(raw.Status.ProviderID), Requests: raw.Spec.Resources.Requests, CreationTime: m.CreationTimestamp.Time,
	}
	c.Initialized = isTrue(raw.Status.Conditions, "Initialized") && c.NodeName != ""
	if at := meta.FindStatusCondition(raw.Status.Conditions, "Initialized"); c.Initialized && at != nil {
		c.BootTime = at.LastTransitionTime.Sub(m.CreationTimestamp.Time)
	}
	if m.DeletionTimestamp != nil {
		c.DeletionTime = m.DeletionTimestamp.Time
	}
	if d, err := time.ParseDuration(raw.Spec.TerminationGracePeriod); err == nil {
		c.TerminationGracePeriod = &d
	}
	return c, nil
}

// ReadPool decodes a NodePool.
func ReadPool(u *unstructured.Unstructured) (*Pool, error) {
	var raw struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Replicas   *int64              `json:"replicas"`
			Limits     corev1.ResourceList `json:"limits"`
			Disruption struct {
				Budgets []DisruptionBudget `json:"budgets"`
			} `json:"disruption"`
			Template struct {
				Metadata struct {
					Labels      map[string]string `json:"labels"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
				Spec struct {
					Requirements []requirement `json:"requirements"`
					NodeClassRef struct {
						Group string `json:"group"`
						Kind  string `json:"kind"`
						Name  string `json:"name"`
					} `json:"nodeClassRef"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			Resources  corev1.ResourceList `json:"resources"`
			Conditions []metav1.Condition  `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &raw); err != nil {
		return nil, fmt.Errorf("reading NodePool: %w", err)
	}
	m, t := raw.Metadata, raw.Spec.Template
	p := &Pool{
		Name: m.Name, UID: m.UID, Annotations: m.Annotations, Deleting: m.DeletionTimestamp != nil,
		Static: raw.Spec.Replicas != nil, Ready: !isFalse(raw.Status.Conditions, "Ready"),
		Limits: raw.Spec.Limits, Resources: raw.Status.Resources, Budgets: raw.Spec.Disruption.Budgets,
		ClassGroup: t.Spec.NodeClassRef.Group, ClassKind: t.Spec.NodeClassRef.Kind, ClassName: t.Spec.NodeClassRef.Name,
		labels: t.Metadata.Labels, annotations: t.Metadata.Annotations, requirements: t.Spec.Requirements,
	}
	p.spec, _, _ = unstructured.NestedMap(u.DeepCopy().Object, "spec", "template", "spec") // decode has checked its type
	return p, nil
}

// ReadClass decodes a NodeClass.
func ReadClass(u *unstructured.Unstructured) (*Class, error) {
	var raw struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(u, &raw); err != nil {
		return nil, fmt.Errorf("reading NodeClass: %w", err)
	}
	return &Class{Ready: isTrue(raw.Status.Conditions, "Ready")}, nil
}

func decode(u *unstructured.Unstructured, into any) error {
	if u == nil {
		return fmt.Errorf("the object does not exist")
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func isTrue(conditions []metav1.Condition, typ string) bool {
	return is(conditions, typ, metav1.ConditionTrue)
}

func isFalse(conditions []metav1.Condition, typ string) bool {
	return is(conditions, typ, metav1.ConditionFalse)
}

func is(conditions []metav1.Condition, typ string, status metav1.ConditionStatus) bool {
	for _, c := range conditions {
		if c.Type == typ {
			return c.Status == status
		}
	}
	return false
}

// instanceOf returns the instance id in a provider id such as
// aws:///us-east-1a/i-0a1b2c3d4e5f60718, or empty.
func instanceOf(providerID string) string {
	id := providerID[strings.LastIndexByte(providerID, '/')+1:]
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// Termination returns the termination deadline of a deleting NodeClaim, or the
// zero time.
func (c *Claim) Termination() time.Time {
	at, err := time.Parse(time.RFC3339, c.Annotations[AnnotationTermination])
	if err != nil {
		return time.Time{}
	}
	return at
}
