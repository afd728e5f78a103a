package record

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// ObserveMessage begins the message of a decision with mode Observe. What mode Act would do follows.
const ObserveMessage = "nothing is done, because the controller runs with mode Observe; with mode Act: "

// Observed returns what mode Act would do about an Interruption that was only observed.
func Observed(in *v1beta1.Interruption) (would string, only bool) {
	if in.Status.Decision == nil {
		return "", false
	}
	return strings.CutPrefix(in.Status.Decision.Message, ObserveMessage)
}
