package report

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func TestObservedInterruptionsAreComparedWithKarpenter(t *testing.T) {
	for _, kind := range notice.Kinds() {
		in := &v1beta1.Interruption{}
		in.Status.Kind = kind
		in.Status.Decision = &v1beta1.Decision{Mode: v1beta1.ModeObserve, Action: v1beta1.ActionDrain, Replacement: v1beta1.ReplacementBefore, Message: record.ObserveMessage + "waits for approval"}
		text := compared(in)
		none := kind == notice.KindRebalanceRecommendation || kind == notice.KindHealthIssue || kind == notice.KindAutoScalingTermination ||
			kind == notice.KindLifecycleActionFailure || kind == notice.KindRequested
		if strings.Contains(text, "does nothing") != none || !strings.Contains(text, "with mode Act: waits for approval; on nodes of Karpenter a replacement first") {
			t.Errorf("%s: %s", kind, text)
		}
		in.Status.Decision.Action = v1beta1.ActionIgnore
		if text := compared(in); strings.Contains(text, "replacement") {
			t.Errorf("%s is ignored: %s", kind, text)
		}
		in.Status.Decision.Mode = v1beta1.ModeAct
		if text := compared(in); text != "" {
			t.Errorf("%s, and Lifeboat acted: %s", kind, text)
		}
	}
}
