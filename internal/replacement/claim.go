package replacement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// longestName is the limit for a label value: Karpenter writes a NodeClaim's
// name into labels and tags.
const longestName = 63

var plainID = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// Name returns the name of the NodeClaim that replaces an instance. It derives
// from the instance id, so repeated orders create one NodeClaim. nth, from 1,
// counts replacements of the same instance; earlier ones became regular nodes.
func Name(pool, instanceID string, nth int) string {
	id := strings.TrimPrefix(instanceID, "i-")
	if !plainID.MatchString(id) {
		sum := sha256.Sum256([]byte(instanceID))
		id = hex.EncodeToString(sum[:])[:17]
	}
	end := "-lb-" + id
	if nth > 1 {
		end += fmt.Sprintf("-%d", nth)
	}
	return strings.TrimRight(pool[:min(len(pool), longestName-len(end))], "-.") + end
}

// HasServed reports whether a NodeClaim was a replacement and is a regular node
// now.
func HasServed(c *Claim) bool {
	return c != nil && c.Replaces() == "" && c.Annotations[v1beta1.AnnotationInterruption] != ""
}

// requests is the sum of what the movable pods and the DaemonSet pods request.
func (f Facts) requests() corev1.ResourceList {
	return total(append(Movable(f.Pods), everywhere(f.Pods)...))
}

// reclaims reports whether EC2 wants the capacity of the instance back, for
// that kind of notice.
func reclaims(kind string) bool {
	return slices.Contains([]string{
		notice.KindSpotInterruption, notice.KindRebalanceRecommendation, notice.KindCapacityReservationInterruption,
	}, kind)
}

// order creates the NodeClaim for a replacement.
func order(f Facts) Decision {
	all := append(slices.Clone(f.Pool.requirements), needs(Movable(f.Pods), f.Node, f.Pool)...)
	without := exclusion{}
	if reclaims(f.Kind) {
		labels := maps.Clone(f.Node.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, f.Interrupted.Labels)
		without = exclude(labels, all, f.Try())
	}
	extra := append(all[len(f.Pool.requirements):], without.requirements...)
	s := f.as(v1beta1.ReplacementOrdered, ReasonOrdered, "")
	at := microTime(f.Now)
	s.Name, s.UID, s.NodeName, s.OrderTime, s.Tries, s.ReadyTime = f.Name, "", "", &at, f.Try(), nil
	s.Message = clip(f.orderMessage(without))
	return Decision{Status: s, Order: f.claim(extra, all)}
}

// Trial returns the NodeClaim of a replacement even if none is needed now, so that a dry run can try its creation.
func Trial(f Facts) *unstructured.Unstructured { return order(f).Order }

func (f Facts) orderMessage(without exclusion) string {
	text := fmt.Sprintf("created NodeClaim %s from NodePool %s for %d pods", f.Name, f.Pool.Name, len(Movable(f.Pods)))
	if without.note != "" {
		text += " (" + without.note + ")"
	}
	if try := f.Try(); try > 1 {
		text += fmt.Sprintf(", try %d of %d", try, MostTries)
	}
	return text
}

// claim makes the NodeClaim from the NodePool's current template, not from the
// interrupted NodeClaim. That one's labels contain resolved values, which
// Karpenter would copy to the new Node whatever it launches.
func (f Facts) claim(extra, all []requirement) *unstructured.Unstructured {
	p := f.Pool
	labels := customLabels(all, f.Node)
	maps.Copy(labels, p.labels)
	labels[LabelNodePool], labels[v1beta1.LabelReplacesInstance] = p.Name, f.InstanceID
	annotations := maps.Clone(p.annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{annotationHash, annotationHashVersion} {
		if value, ok := p.Annotations[key]; ok {
			annotations[key] = value
		}
	}
	annotations[v1beta1.AnnotationKarpenterDoNotDisrupt], annotations[v1beta1.AnnotationInterruption] = "true", f.Interruption

	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": f.Name, "labels": object(labels), "annotations": object(annotations),
			"ownerReferences": []any{map[string]any{
				"apiVersion": Group + "/" + Version, "kind": "NodePool", "name": p.Name, "uid": string(p.UID), "blockOwnerDeletion": true,
			}},
		},
		"spec": f.spec(extra),
	}}
	u.SetGroupVersionKind(KindNodeClaim)
	return u
}

func (f Facts) spec(extra []requirement) map[string]any {
	spec := (&unstructured.Unstructured{Object: f.Pool.spec}).DeepCopy().Object
	if spec == nil {
		spec = map[string]any{}
	}
	requirements, _, _ := unstructured.NestedSlice(spec, "requirements") // ReadPool has checked that it is a list
	for _, r := range extra {
		if len(requirements) < mostRequirements {
			requirements = append(requirements, r.object())
		}
	}
	if requirements == nil {
		requirements = []any{} // Karpenter's CRD requires the field
	}
	spec["requirements"] = requirements
	requests := map[string]any{}
	for name, q := range f.requests() {
		if q.Sign() > 0 {
			requests[string(name)] = q.String()
		}
	}
	spec["resources"] = map[string]any{"requests": requests}
	return spec
}

func object(m map[string]string) map[string]any {
	o := make(map[string]any, len(m))
	for k, v := range m {
		o[k] = v
	}
	return o
}

func one() *resource.Quantity { return resource.NewQuantity(1, resource.DecimalSI) }

// named lists a few names and the number of the others.
func named(names []string) string {
	const most = 4
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// clip shortens a sentence to the CRD's limit.
func clip(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
