package record

import "github.com/lifeboat-dev/lifeboat/api/v1beta1"

// ObserveMessage begins the message of a decision with mode Observe, for people. What mode Act would do follows.
const ObserveMessage = "nothing is done, because the controller runs with mode Observe; with mode Act: "

// IsObserved reports whether an Interruption was only observed.
func IsObserved(in *v1beta1.Interruption) bool {
	return in.Status.Decision != nil && in.Status.Decision.Mode == v1beta1.ModeObserve
}
