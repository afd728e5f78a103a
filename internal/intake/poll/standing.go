package poll

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Standing returns the notices of a source that are on record and were not
// taken back, and were heard since the last interruption was over. A restart knows by them
// what it has to take back.
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

// stands reports whether a notice on record is still to be acted on. One of the time
// before an interruption of the instance was over is not: to take it back would only
// open the record again, or take back what came since.
func stands(record *v1alpha1.Interruption, n *v1alpha1.Notice) bool {
	over := cmp.Or(record.Status.CompletionTime, record.Status.Since)
	return !n.Withdrawn && (over == nil || n.ReceivedTime.After(over.Time))
}

// isToTakeBack reports whether a notice that takes back has something to do.
func isToTakeBack(record *v1alpha1.Interruption, n *notice.Notice) bool {
	return record != nil && slices.ContainsFunc(record.Spec.Notices, func(on v1alpha1.Notice) bool {
		return stands(record, &on) && (isAbout(&on, n) || notice.TakesBack(&n.Notice, &on))
	})
}

// isAbout reports whether what is on record is of the notice's subject.
func isAbout(on *v1alpha1.Notice, n *notice.Notice) bool {
	return on.ID == n.ID || n.Subject != "" && on.Subject == n.Subject && on.Kind == n.Kind && on.Source == n.Source
}

// TakeBack makes of a notice the news that it holds no more, for the reason
// given.
func TakeBack(n notice.Notice, because string) notice.Notice {
	back := notice.Notice{Notice: *n.DeepCopy(), InstanceID: n.InstanceID}
	back.ID = ID(n.Source, n.Kind, n.Subject, "over", n.ID)
	back.Withdrawn, back.Description = true, because
	back.Time, back.ReceivedTime = metav1.Time{}, metav1.MicroTime{}
	return back
}
