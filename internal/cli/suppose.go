package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// supposition is a notice that has not come.
type supposition struct{ kind, in, code string }

const (
	// kindStatus is the short word for the kind that no message tells.
	kindStatus = "status"
	// supposedID marks what is made up.
	supposedID = "supposed"
	// aStatusCheck is the check that fails where none is named (EC2 API,
	// InstanceStatus).
	aStatusCheck = "instance"
)

func (f *supposition) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "suppose a notice of this kind: "+strings.Join(kindWords(), ", ")+", or a kind as policies name it (default spot, where the node has no interruption)")
	flags.StringVar(&f.in, "in", "", "how far away the notice's deadline is, such as 12d, 2h or 2m (default 2m for spot, 14d for scheduled)")
	flags.StringVar(&f.code, "event-type-code", "", "AWS's own word for what happens, such as "+drill.DefaultScheduledCode+" or instance-stop")
}

// check makes sure that what is supposed goes together.
func (f *supposition) check() error {
	kind, err := findKind(f.kind)
	switch {
	case err != nil:
		return err
	case f.in != "" && !hasDeadline(kind):
		return usageErrorf("--in means nothing for kind %s: its notices name no moment ahead", kind.Name)
	case f.code != "" && f.kind == "":
		return usageErrorf("--event-type-code goes with a kind: add --kind, such as --kind scheduled")
	}
	if f.in != "" {
		if f.kind == "" {
			f.kind = kindSpot // as it always was: a reclaim in so many seconds
		}
		if in, err := parseDays(f.in); err != nil || in < 0 || in > farthest {
			return usageErrorf("--in %q: write how far away it is, such as 12d, 2h or 2m, up to 365d", f.in)
		}
	}
	return nil
}

// findKind finds a kind by any word for it; spot by none.
func findKind(word string) (drill.Kind, error) {
	switch {
	case word == "":
		word = kindSpot
	case word == kindStatus, strings.EqualFold(word, notice.KindInstanceStatus):
		return drill.Kind{Name: notice.KindInstanceStatus, Short: kindStatus}, nil
	}
	kind, err := drill.FindKind(word)
	if err != nil {
		return kind, usageErrorf("unknown kind %q: write one of %s, or one of %s", word, strings.Join(kindWords(), ", "), strings.Join(notice.Kinds(), ", "))
	}
	return kind, nil
}

func kindWords() []string {
	var words []string
	for _, k := range drill.Kinds() {
		words = append(words, k.Short)
	}
	return append(words, kindStatus)
}

// hasDeadline reports whether notices of the kind say when something happens,
// beyond that it does now.
func hasDeadline(k drill.Kind) bool {
	return k.Accepts(drill.OptionIn) || k.Name == notice.KindSpotInterruption
}

// lead is how far away the deadline is.
func (f supposition) lead(k drill.Kind) time.Duration {
	if in, err := parseDays(f.in); err == nil {
		return in
	}
	if k.Lead > 0 {
		return k.Lead
	}
	return drill.Lead
}

// notice makes the notice up, as if it came now. It is read from the message that
// AWS would send, so that nothing is taken for what no notice says.
func (f supposition) notice(node *corev1.Node, now time.Time) (v1alpha1.Notice, error) {
	kind, err := findKind(f.kind)
	if err != nil {
		return v1alpha1.Notice{}, err
	}
	n, err := f.read(kind, node, now)
	if err != nil {
		return n, fmt.Errorf("supposing a notice of kind %s: %w", kind.Name, err)
	}
	n.ID, n.Source, n.Drill = supposedID, "plan", false
	n.Time, n.ReceivedTime = metav1.NewTime(now), metav1.NewMicroTime(now)
	if n.Deadline != nil && hasDeadline(kind) { // messages have whole seconds
		n.Deadline.Time = metav1.NewTime(now.Add(f.lead(kind)))
	}
	if f.code != "" {
		n.EventTypeCode = f.code
	}
	return n, nil
}

func (f supposition) read(kind drill.Kind, node *corev1.Node, now time.Time) (v1alpha1.Notice, error) {
	id, zone := instanceOf(node)
	if id == "" {
		id = "i-00000000" // what is no instance of EC2's can be supposed to be one
	}
	begins := now.Add(f.lead(kind))
	switch {
	case kind.Name == notice.KindInstanceStatus: // no message says it
		return v1alpha1.Notice{Kind: kind.Name, Subject: aStatusCheck, EventTypeCode: aStatusCheck}, nil
	case kind.Name == notice.KindScheduledChange && slices.Contains(poll.ScheduledCodes(), f.code): // EC2's words, not AWS Health's
		n, err := poll.Scheduled{EventID: supposedID, Code: f.code, NotBefore: begins}.Notice(notice.SourceEC2, id)
		return n.Notice, err
	}
	body, err := drill.Notice{
		Place: drill.Place{Account: "000000000000", Region: drill.RegionOf(zone)}, Kind: kind.Name, ID: drill.NewID(), Drill: supposedID,
		Target: drill.Target{InstanceID: id, Zone: zone, Reservation: "cr-" + supposedID}, Time: now, Begins: begins, Code: f.code,
	}.Body()
	if err != nil {
		return v1alpha1.Notice{}, err
	}
	notices, err := sqs.Read(body)
	if err != nil {
		return v1alpha1.Notice{}, err
	}
	return notices[0].Notice, nil
}
