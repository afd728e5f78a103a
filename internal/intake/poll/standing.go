package poll

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// OpenNotices returns the recorded notices of a source that are not withdrawn
// and were received since the latest interruption was completed. After a
// restart these are what the source may have to withdraw.
func OpenNotices(ctx context.Context, reader client.Reader, source string) ([]notice.Notice, error) {
	var all v1beta1.InterruptionList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing interruptions: %w", err)
	}
	var open []notice.Notice
	for i := range all.Items {
		open = append(open, openNoticesIn(&all.Items[i], source)...)
	}
	return open, nil
}

// OpenNoticesOf is OpenNotices for one instance.
func OpenNoticesOf(ctx context.Context, reader client.Reader, source, instanceID string) ([]notice.Notice, error) {
	record, err := read(ctx, reader, instanceID)
	if err != nil || record == nil {
		return nil, err
	}
	return openNoticesIn(record, source), nil
}

func openNoticesIn(record *v1beta1.Interruption, source string) []notice.Notice {
	var open []notice.Notice
	for i := range record.Spec.Notices {
		if n := &record.Spec.Notices[i]; n.Source == source && n.Subject != "" && isOpen(record, n) {
			open = append(open, notice.Notice{Notice: *n.DeepCopy(), InstanceID: record.Spec.InstanceID})
		}
	}
	return open
}

// isOpen reports whether a recorded notice still requires action. One from
// before the latest completion does not: its withdrawal would reopen the
// record, or withdraw a newer notice.
func isOpen(record *v1beta1.Interruption, n *v1beta1.Notice) bool {
	return !n.Withdrawn && n.ReceivedTime.After(notice.Completed(record.Status.History))
}

// mustWithdraw reports whether a withdrawal has something to withdraw.
func mustWithdraw(record *v1beta1.Interruption, n *notice.Notice) bool {
	return record != nil && slices.ContainsFunc(record.Spec.Notices, func(on v1beta1.Notice) bool {
		return isOpen(record, &on) && (isAbout(&on, n) || notice.TakesBack(&n.Notice, &on))
	})
}

// isAbout reports whether a recorded notice has the subject of n.
func isAbout(on *v1beta1.Notice, n *notice.Notice) bool {
	return on.ID == n.ID || n.Subject != "" && on.Subject == n.Subject && on.Kind == n.Kind && on.Source == n.Source
}

// Withdraw returns the withdrawal of a notice with a reason.
func Withdraw(n notice.Notice, because string) notice.Notice {
	back := notice.Notice{Notice: *n.DeepCopy(), InstanceID: n.InstanceID}
	back.ID = ID(n.Source, n.Kind, n.Subject, "over", n.ID)
	back.Withdrawn, back.Description = true, because
	back.Time, back.ReceivedTime = metav1.Time{}, metav1.MicroTime{}
	return back
}

// Recorded returns the recorded notice with the subject of n, or nil, and
// whether it still requires action.
func Recorded(ctx context.Context, reader client.Reader, n *notice.Notice) (on *v1beta1.Notice, stillOpen bool, err error) {
	record, err := read(ctx, reader, n.InstanceID)
	if err != nil {
		return nil, false, err
	}
	if on = bySubject(record, n); on == nil {
		return nil, false, nil
	}
	return on, isOpen(record, on), nil
}
