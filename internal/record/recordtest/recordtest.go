// Package recordtest builds Interruptions for tests.
package recordtest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Complete completes an Interruption at a time. Its notices with these keys are handled; without keys all
// of them are.
func Complete(in *v1beta1.Interruption, at time.Time, keys ...string) {
	if len(keys) == 0 {
		for i := range in.Spec.Notices {
			keys = append(keys, notice.Key(&in.Spec.Notices[i]))
		}
	}
	end := metav1.NewMicroTime(at)
	in.Status.CompletionTime = &end
	in.Status.History = append(in.Status.History, v1beta1.HistoryEntry{
		Kind: in.Status.Kind, Outcome: v1beta1.OutcomeCompleted, EndTime: end, HandledNotices: keys,
	})
}

// CompletedBefore is the history of a record whose earlier interruption was completed at a time.
func CompletedBefore(at time.Time) []v1beta1.HistoryEntry {
	return []v1beta1.HistoryEntry{{Outcome: v1beta1.OutcomeCompleted, EndTime: metav1.NewMicroTime(at)}}
}

// Handle notes that notices with these keys are handled.
func Handle(in *v1beta1.Interruption, keys ...string) {
	in.Status.History = append(in.Status.History, v1beta1.HistoryEntry{Outcome: v1beta1.OutcomeHandled, HandledNotices: keys})
}
