package drill

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Option is something that some kinds of notice can be told and others cannot.
type Option string

// The options, by the words that a user knows them by.
const (
	OptionAction Option = "action"
	OptionState  Option = "state"
	OptionCode   Option = "code"
	OptionIn     Option = "in"
	OptionClose  Option = "close"
	OptionGroup  Option = "group"
)

// Kind is a kind of notice that can be sent on purpose.
type Kind struct {
	// Name is the kind's name in package notice.
	Name string
	// Short is a shorter word for it.
	Short string
	// Takes are the options that have a meaning for it.
	Takes []Option
	// Lead is how far ahead the change is unless somebody says otherwise; 0
	// where the kind names no moment.
	Lead time.Duration
	// detail writes the part of the message that differs from kind to kind.
	detail func(*Notice, *envelope)
}

// Kinds lists every kind of notice that AWS sends as a message, so that it can
// be sent on purpose. [notice.KindInstanceStatus] is not among them: no message
// says it, EC2 has to be asked.
func Kinds() []Kind {
	return []Kind{
		{Name: notice.KindSpotInterruption, Short: "spot", Takes: []Option{OptionAction}, detail: spot},
		{Name: notice.KindRebalanceRecommendation, Short: "rebalance", detail: rebalance},
		// Health tells of scheduled changes about two weeks ahead.
		{Name: notice.KindScheduledChange, Short: "scheduled", Takes: []Option{OptionCode, OptionIn, OptionClose},
			Lead: 14 * 24 * time.Hour, detail: scheduledChange},
		{Name: notice.KindHealthIssue, Short: "health", Takes: []Option{OptionCode, OptionClose}, detail: healthIssue},
		{Name: notice.KindInstanceStateChange, Short: "state", Takes: []Option{OptionState}, detail: stateChange},
		{Name: notice.KindCapacityReservationInterruption, Short: "capacity-reservation", Takes: []Option{OptionAction, OptionIn},
			Lead: 2 * time.Minute, detail: reservation},
		{Name: notice.KindCapacityBlockExpiration, Short: "capacity-block", Takes: []Option{OptionIn},
			Lead: 10 * time.Minute, detail: blockExpiration},
		{Name: notice.KindAutoScalingTermination, Short: "autoscaling", Takes: []Option{OptionGroup}, detail: termination},
		{Name: notice.KindLifecycleActionFailure, Short: "lifecycle-failure", Takes: []Option{OptionGroup}, detail: lifecycleFailure},
	}
}

// Accepts reports whether an option has a meaning for the kind.
func (k Kind) Accepts(o Option) bool { return slices.Contains(k.Takes, o) }

// FindKind returns the kind that a word names: its name, with or without
// hyphens and in any case, or its short form. The error lists them all.
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
		return Kind{}, fmt.Errorf("kind %s cannot be sent: no message of AWS says it, Lifeboat asks EC2 (DescribeInstanceStatus)", notice.KindInstanceStatus)
	}
	return Kind{}, fmt.Errorf("unknown kind %q: write one of %s, or a kind as policies name it, such as %s",
		word, strings.Join(words, ", "), notice.KindScheduledChange)
}

func fold(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(word))
}
