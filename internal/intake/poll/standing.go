package poll

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Standing returns the notices of a source that are on record and were not
// taken back, of all interruptions that are not over. A restart knows by them
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
	if isOver(record) {
		return nil
	}
	var standing []notice.Notice
	for i := range record.Spec.Notices {
		if n := &record.Spec.Notices[i]; n.Source == source && n.Subject != "" && !n.Withdrawn {
			standing = append(standing, notice.Notice{Notice: *n.DeepCopy(), InstanceID: record.Spec.InstanceID})
		}
	}
	return standing
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
