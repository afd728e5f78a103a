package drill

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Option is a parameter that only some kinds of notice have.
type Option string

// The options, with the names of the command-line flags.
const (
	OptionAction Option = "action"
	OptionState  Option = "state"
	OptionCode   Option = "event-type-code"
	OptionIn     Option = "in"
	OptionCancel Option = "cancel"
	OptionGroup  Option = "group"
)

// Kind is a kind of notice that can be sent on purpose.
type Kind struct {
	// Name is the kind's name in package notice.
	Name string
	// Short is a short name.
	Short string
	// Takes are the options of the kind.
	Takes []Option
	// Lead is the default time until the change; 0 if the kind has no time.
	Lead time.Duration
	// detail fills in the part of the message that is specific to the kind.
	detail func(*Notice, *envelope)
}

// Kinds returns every kind of notice that AWS sends as a message. It does not contain
// [notice.KindInstanceStatus], which Lifeboat reads from EC2 and which has no
// message.
func Kinds() []Kind {
	return []Kind{
		{Name: notice.KindSpotInterruption, Short: "spot", Takes: []Option{OptionAction}, detail: spot},
		{Name: notice.KindRebalanceRecommendation, Short: "rebalance", detail: rebalance},
		// Health announces scheduled changes about two weeks in advance.
		{Name: notice.KindScheduledChange, Short: "scheduled", Takes: []Option{OptionCode, OptionIn, OptionCancel},
			Lead: 14 * 24 * time.Hour, detail: scheduledChange},
		{Name: notice.KindHealthIssue, Short: "health", Takes: []Option{OptionCode, OptionCancel}, detail: healthIssue},
		{Name: notice.KindInstanceStateChange, Short: "state", Takes: []Option{OptionState}, detail: stateChange},
		{Name: notice.KindCapacityReservationInterruption, Short: "capacity-reservation", Takes: []Option{OptionAction, OptionIn},
			Lead: 2 * time.Minute, detail: reservation},
		{Name: notice.KindCapacityBlockExpiration, Short: "capacity-block", Takes: []Option{OptionIn},
			Lead: 10 * time.Minute, detail: blockExpiration},
		{Name: notice.KindAutoScalingTermination, Short: "autoscaling", Takes: []Option{OptionGroup}, detail: termination},
		{Name: notice.KindLifecycleActionFailure, Short: "lifecycle-failure", Takes: []Option{OptionGroup}, detail: lifecycleFailure},
	}
}

// Accepts reports whether the kind has the option.
func (k Kind) Accepts(o Option) bool { return slices.Contains(k.Takes, o) }

// FindKind returns the kind with this name, with or without hyphens and in any case,
// or with this short name. The error lists all kinds.
func FindKind(word string) (Kind, error) {
	folded := fold(word)
	var words []string
	for _, k := range Kinds() {
		if folded == fold(k.Name) || folded == fold(k.Short) || folded == fold(strings.TrimPrefix(k.Name, "Instance")) {
			return k, nil
		}
		words = append(words, k.Short)
	}
	if folded == fold(notice.KindInstanceStatus) {
		return Kind{}, fmt.Errorf("kind %s cannot be sent: AWS has no message for it, Lifeboat reads it from EC2 (DescribeInstanceStatus)", notice.KindInstanceStatus)
	}
	return Kind{}, fmt.Errorf("unknown kind %q: write one of %s, or a kind as policies name it, such as %s",
		word, strings.Join(words, ", "), notice.KindScheduledChange)
}

func fold(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(word))
}
