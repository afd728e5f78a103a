package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// whatIf is a hypothetical notice.
type whatIf struct{ kind, in, code string }

const (
	// kindStatus is the short name of the kind that has no message.
	kindStatus = "status"
	// supposedID marks a hypothetical notice.
	supposedID = "supposed"
	// defaultStatusCheck is the default status check (EC2 API, InstanceStatus).
	defaultStatusCheck = "instance"
)

func (f *whatIf) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "kind of the hypothetical notice: "+strings.Join(kindWords(), ", ")+", or the name in policies (default spot, if the node has no interruption)")
	flags.StringVar(&f.in, "in", "", "time until the notice's deadline, such as 12d, 2h or 2m (default 2m for spot, 14d for scheduled)")
	flags.StringVar(&f.code, "event-type-code", "", "AWS's own code for the event, such as "+drill.DefaultScheduledCode+" or instance-stop")
}

// check validates the flags.
func (f *whatIf) check() error {
	kind, err := findKind(f.kind)
	switch {
	case err != nil:
		return err
	case f.in != "" && !hasDeadline(kind):
		return usageErrorf("--in does not apply to kind %s, because its notices have no deadline: remove it", kind.Name)
	case f.code != "" && f.kind == "":
		return usageErrorf("--event-type-code needs --kind: add it, for example --kind scheduled")
	}
	if f.in != "" {
		if f.kind == "" {
			f.kind = kindSpot // --in alone means a spot interruption
		}
		if in, err := parseDays(f.in); err != nil || in < 0 || in > maxLead {
			return usageErrorf("invalid --in %q: write the time until the deadline, such as 12d, 2h or 2m, up to 365d", f.in)
		}
	}
	return nil
}

// findKind finds a kind by its name or short name. The default is spot.
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

// hasDeadline reports whether notices of the kind name a time in the future.
func hasDeadline(k drill.Kind) bool {
	return k.Accepts(drill.OptionIn) || k.Name == notice.KindSpotInterruption
}

// lead returns the time until the deadline.
func (f whatIf) lead(k drill.Kind) time.Duration {
	if in, err := parseDays(f.in); err == nil {
		return in
	}
	if k.Lead > 0 {
		return k.Lead
	}
	return drill.Lead
}

// notice makes the hypothetical notice. It decodes the message that AWS would
// send, so that it has no fields that a real notice lacks.
func (f whatIf) notice(node *corev1.Node, now time.Time) (v1beta1.Notice, error) {
	kind, err := findKind(f.kind)
	if err != nil {
		return v1beta1.Notice{}, err
	}
	n, err := f.read(kind, node, now)
	if err != nil {
		return n, fmt.Errorf("making a notice of kind %s: %w", kind.Name, err)
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

func (f whatIf) read(kind drill.Kind, node *corev1.Node, now time.Time) (v1beta1.Notice, error) {
	id, zone := instanceOf(node)
	if id == "" {
		id = "i-00000000" // a node outside EC2 gets a placeholder
	}
	begins := now.Add(f.lead(kind))
	switch {
	case kind.Name == notice.KindInstanceStatus: // this kind has no message
		return v1beta1.Notice{Kind: kind.Name, Subject: defaultStatusCheck, EventTypeCode: defaultStatusCheck}, nil
	case kind.Name == notice.KindScheduledChange && slices.Contains(poll.ScheduledCodes(), f.code): // a code of EC2, not of AWS Health
		n, err := poll.Scheduled{EventID: supposedID, Code: f.code, NotBefore: begins}.Notice(notice.SourceEC2, id)
		return n.Notice, err
	}
	body, err := drill.Notice{
		Place: drill.Place{Account: "000000000000", Region: drill.RegionOf(zone)}, Kind: kind.Name, ID: drill.NewID(), Drill: supposedID,
		Target: drill.Target{InstanceID: id, Zone: zone, Reservation: "cr-" + supposedID}, Time: now, Begins: begins, Code: f.code,
	}.Body()
	if err != nil {
		return v1beta1.Notice{}, err
	}
	notices, err := sqs.Read(body)
	if err != nil {
		return v1beta1.Notice{}, err
	}
	return notices[0].Notice, nil
}
