package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// maxLead is the maximum of --in.
const maxLead = 365 * 24 * time.Hour

// check validates the flags and fills in the derived ones.
func (f *interruptFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.interactive && len(args) > 0:
		return usageErrorf("--interactive chooses from a list: remove the node arguments")
	case !f.interactive && len(args) == 0:
		return usageErrorf("%s takes at least one node or instance, or --interactive; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	kind, err := drill.FindKind(f.kind)
	if err != nil {
		return usageErrorf("%w", err)
	}
	f.of = kind
	for _, check := range []func() error{f.checkWay, f.checkUntil, f.checkOptions, f.checkWords, f.checkTimes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkWay decides whether FIS or the queue is used.
func (f *interruptFlags) checkWay() error {
	if f.via != viaFIS && f.via != viaQueue {
		return usageErrorf("unknown --via %q: write fis or queue", f.via)
	}
	if !f.viaGiven && f.of.Name != notice.KindSpotInterruption {
		f.via = viaQueue
	}
	if f.via == viaQueue {
		return nil
	}
	if f.endInstance {
		return usageErrorf("--end-instance works only with --via queue: with FIS, EC2 ends the instance")
	}
	switch {
	case f.queueURL != "":
		return usageErrorf("--queue-url works only with --via queue: add --via queue or remove --queue-url")
	case f.of.Name == notice.KindSpotInterruption:
		return nil
	case f.of.Name != notice.KindRebalanceRecommendation:
		return usageErrorf("FIS sends spot interruptions and rebalance recommendations only: use --via queue for %s", f.of.Name)
	}
	if !f.delayGiven {
		f.delay = drill.MaxDelay // the recommendation is sent at once, the notice after the delay
	}
	return nil
}

// checkUntil sets the goal of --wait.
func (f *interruptFlags) checkUntil() error {
	switch {
	case f.until == "" && f.via == viaQueue:
		f.until = untilDrained
	case f.until == "":
		f.until = untilCompleted
	case f.until != untilDrained && f.until != untilCompleted:
		return usageErrorf("unknown --until %q: write drained or completed", f.until)
	}
	return nil
}

// checkOptions rejects options that do not apply to the kind.
func (f *interruptFlags) checkOptions() error {
	given := map[drill.Option]bool{
		drill.OptionAction: f.action != "", drill.OptionState: f.state != "", drill.OptionCode: f.code != "",
		drill.OptionIn: f.in != "", drill.OptionCancel: f.cancel, drill.OptionGroup: f.group != "",
	}
	for _, o := range []drill.Option{drill.OptionAction, drill.OptionState, drill.OptionCode, drill.OptionIn, drill.OptionCancel, drill.OptionGroup} {
		switch {
		case !given[o]:
		case !f.of.Accepts(o):
			return usageErrorf("--%s does not apply to kind %s: remove it", o, f.of.Name)
		case f.via == viaFIS:
			return usageErrorf("--%s works only with --via queue: with FIS, EC2 follows the spot request", o)
		}
	}
	if f.cancel && f.endInstance {
		return usageErrorf("--cancel cancels an announced change: remove --end-instance")
	}
	if f.cancel && f.in != "" {
		return usageErrorf("--cancel cancels an announced change: remove --in")
	}
	return nil
}

func (f *interruptFlags) checkWords() error {
	actions := []string{notice.ActionTerminate, notice.ActionStop, notice.ActionHibernate}
	states := []string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}
	switch {
	case f.action != "" && !slices.Contains(actions, f.action):
		return usageErrorf("unknown --action %q: write one of %s", f.action, strings.Join(actions, ", "))
	case f.state != "" && !slices.Contains(states, f.state):
		return usageErrorf("unknown --state %q: write one of %s", f.state, strings.Join(states, ", "))
	case f.code != "" && !strings.HasPrefix(f.code, "AWS_EC2_"):
		return usageErrorf("unknown --event-type-code %q: EC2's codes begin with AWS_EC2_, such as %s", f.code, drill.DefaultScheduledCode)
	}
	return nil
}

func (f *interruptFlags) checkTimes() error {
	if f.delay < 0 || f.delay > drill.MaxDelay {
		return usageErrorf("delay %s is out of range: FIS allows 0s to %s", f.delay, terminal.Duration(drill.MaxDelay))
	}
	f.lead = f.of.Lead
	if f.in == "" {
		return nil
	}
	lead, err := parseDays(f.in)
	if err != nil || lead < 0 || lead > maxLead {
		return usageErrorf("invalid --in %q: write the time until the change, such as 12d, 2h or 2m, up to 365d", f.in)
	}
	f.lead = lead
	return nil
}

// parseDays parses a duration that may begin with days, such as 12d or 1d12h.
func parseDays(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("reading the days: %w", err)
	}
	sum := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return sum, nil
	}
	more, err := time.ParseDuration(rest)
	return sum + more, err
}
