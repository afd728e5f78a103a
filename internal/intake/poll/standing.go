package poll

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Standing returns the recorded notices of a source that are not withdrawn and were
// received since the latest interruption was completed. After a restart they tell what the
// source may have to withdraw.
func Standing(ctx context.Context, reader client.Reader, source string) ([]notice.Notice, error) {
	var all v1alpha1.InterruptionList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing interruptions: %w", err)
	}
	var standing []notice.Notice
	for i := range all.Items {
		standing = append(standing, standingIn(&all.Items[i], source)...)
	}
	return standing, nil
}

// StandingOf is Standing for one instance.
func StandingOf(ctx context.Context, reader client.Reader, source, instanceID string) ([]notice.Notice, error) {
	record, err := read(ctx, reader, instanceID)
	if err != nil || record == nil {
		return nil, err
	}
	return standingIn(record, source), nil
}

func standingIn(record *v1alpha1.Interruption, source string) []notice.Notice {
	var standing []notice.Notice
	for i := range record.Spec.Notices {
		if n := &record.Spec.Notices[i]; n.Source == source && n.Subject != "" && stands(record, n) {
			standing = append(standing, notice.Notice{Notice: *n.DeepCopy(), InstanceID: record.Spec.InstanceID})
		}
	}
	return standing
}

// stands reports whether a recorded notice still has to be acted on. One from before the
// latest completion does not: to withdraw it would reopen the record, or withdraw a newer
// notice.
func stands(record *v1alpha1.Interruption, n *v1alpha1.Notice) bool {
	return !n.Withdrawn && n.ReceivedTime.After(notice.Completed(record))
}

// isToTakeBack reports whether a withdrawal has something to withdraw.
func isToTakeBack(record *v1alpha1.Interruption, n *notice.Notice) bool {
	return record != nil && slices.ContainsFunc(record.Spec.Notices, func(on v1alpha1.Notice) bool {
		return stands(record, &on) && (isAbout(&on, n) || notice.TakesBack(&n.Notice, &on))
	})
}

// isAbout reports whether a recorded notice has the subject of n.
func isAbout(on *v1alpha1.Notice, n *notice.Notice) bool {
	return on.ID == n.ID || n.Subject != "" && on.Subject == n.Subject && on.Kind == n.Kind && on.Source == n.Source
}

// TakeBack returns the withdrawal of a notice, for the reason given.
func TakeBack(n notice.Notice, because string) notice.Notice {
	back := notice.Notice{Notice: *n.DeepCopy(), InstanceID: n.InstanceID}
	back.ID = ID(n.Source, n.Kind, n.Subject, "over", n.ID)
	back.Withdrawn, back.Description = true, because
	back.Time, back.ReceivedTime = metav1.Time{}, metav1.MicroTime{}
	return back
}

// Recorded returns the recorded notice with the subject of n, or nil, and whether it still
// has to be acted on.
func Recorded(ctx context.Context, reader client.Reader, n *notice.Notice) (on *v1alpha1.Notice, isStanding bool, err error) {
	record, err := read(ctx, reader, n.InstanceID)
	if err != nil {
		return nil, false, err
	}
	if on = bySubject(record, n); on == nil {
		return nil, false, nil
	}
	return on, stands(record, on), nil
}
