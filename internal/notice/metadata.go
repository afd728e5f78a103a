package notice

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// metadataKinds are the kinds that instance metadata contains; the CRD has the same list.
var metadataKinds = []string{KindSpotInterruption, KindRebalanceRecommendation, KindScheduledChange, KindAutoScalingTermination}

// spotLead is EC2's warning time before a spot interruption: its time is not later, and is not known
// if it cannot be read. Hibernation begins at once (EC2 User Guide, "Spot Instance interruption notices").
const spotLead = 2 * time.Minute

// Limits of the CRD on the texts of a MetadataNotice, in characters.
const (
	maxMetadataText        = 128
	maxMetadataDescription = 512
)

// ToMetadata converts what an agent has read to the form in which it writes it.
func ToMetadata(n *Notice) v1beta1.MetadataNotice {
	m := v1beta1.MetadataNotice{
		ID: n.ID, Kind: n.Kind, Subject: Cut(n.Subject, maxMetadataText), EndTime: n.EndTime.DeepCopy(), InstanceAction: n.InstanceAction,
		EventTypeCode: Cut(n.EventTypeCode, maxMetadataText), Withdrawn: n.Withdrawn, Description: Cut(n.Description, maxMetadataDescription),
	}
	if !n.Time.IsZero() {
		m.IssueTime = n.Time.DeepCopy()
	}
	if n.Deadline != nil {
		m.Deadline = n.Deadline.Time.DeepCopy()
	}
	return m
}

// FromMetadata converts what an agent has written. It trusts neither the agent's clock nor a
// CRD of another release: an issue time in the future becomes now, and it returns an error for
// a notice that no agent of this release writes.
func FromMetadata(m *v1beta1.MetadataNotice, instanceID string, now time.Time) (Notice, error) {
	n := Notice{InstanceID: instanceID, Notice: v1beta1.Notice{
		ID: m.ID, Kind: m.Kind, Source: SourceIMDS, Subject: m.Subject, EndTime: m.EndTime.DeepCopy(), InstanceAction: m.InstanceAction,
		EventTypeCode: m.EventTypeCode, Withdrawn: m.Withdrawn, Description: m.Description,
	}}
	switch {
	case !slices.Contains(metadataKinds, m.Kind):
		return Notice{}, fmt.Errorf("notice %s: instance metadata has no notices of the kind %s", m.ID, m.Kind)
	case !strings.HasPrefix(m.ID, SourceIMDS+"/"):
		return Notice{}, fmt.Errorf("notice %s: the id of an agent's notice begins with %s/", m.ID, SourceIMDS)
	}
	if m.IssueTime != nil {
		n.Time = *m.IssueTime.DeepCopy()
	}
	if n.Time.After(now) {
		n.Time = metav1.NewTime(now)
	}
	return n, setDeadline(&n, m.Deadline, now)
}

// setDeadline sets the deadline that a notice of its kind has.
func setDeadline(n *Notice, at *metav1.Time, now time.Time) error {
	switch {
	case n.Kind == KindSpotInterruption && at != nil && !at.After(now.Add(spotLead)):
		n.Deadline = At(at.Time, v1beta1.DeadlineHard)
	case n.Kind == KindSpotInterruption && n.InstanceAction == ActionHibernate:
		n.Deadline = At(now, v1beta1.DeadlineHard)
	case n.Kind == KindSpotInterruption: // a later time shows that this clock is behind EC2's
		n.Deadline = At(now.Add(spotLead), v1beta1.DeadlineHard)
	case n.Kind == KindScheduledChange && at != nil:
		n.Deadline = At(at.Time, v1beta1.DeadlineSoft)
	case n.Kind == KindScheduledChange && !n.Withdrawn:
		return fmt.Errorf("notice %s of the kind %s has no deadline", n.ID, n.Kind)
	}
	return nil
}
