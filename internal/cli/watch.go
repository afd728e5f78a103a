package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

type watchFlags struct {
	once, untilDone, table bool
}

func newWatch(s *session) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [NODE|INSTANCE]",
		Short: "Follow interruptions live",
		Long: `Follow interruptions live: one line per event, with the time since Lifeboat
received the first notice, the node, the reason and a message.

With --table it prints one line per interruption instead and redraws it in place:
phase, time left, number of pods that moved, and what the interruption waits for.

With -o json each line is a JSON object.`,
		Example: `  lifeboat watch
  lifeboat watch --table
  lifeboat watch ip-10-0-1-5.ec2.internal --until-done
  lifeboat watch --once -o json | jq -r 'select(.reason == "PodLost") | .message'`,
		Args: arguments(0, 1, "at most one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.table && s.isJSON():
				return usageErrorf("--table does not work with -o json: remove one of them")
			case f.table && !s.out.TTY:
				return usageErrorf("--table needs a terminal, and standard output is none: remove it, or use -o json")
			}
			c, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			v := newViewer(s, f)
			if len(args) == 1 {
				v.only = args[0]
			}
			return v.run(cmd.Context(), c)
		},
	}
	cmd.Flags().BoolVar(&f.once, "once", false, "print the events so far, and exit")
	cmd.Flags().BoolVar(&f.untilDone, "until-done", false, "exit when no observed node has a pod left to move, except nodes that wait for their start time or for an approval; exit 1 if a pod was lost")
	cmd.Flags().BoolVar(&f.table, "table", false, "print one line per interruption, redrawn in place")
	return cmd
}

// viewer is one run of `watch`.
type viewer struct {
	*session
	flags    watchFlags
	only     string
	timeline *timeline
	// table is set for --table.
	table *watchTable
	// open holds the Interruptions seen, and whether they are still in
	// progress.
	open map[types.UID]bool
	// lost is the number of pods that each of them lost.
	lost map[types.UID]int32
	// complete is true after the first list was processed.
	complete bool
	failure  error
}

func newViewer(s *session, f watchFlags) *viewer {
	v := &viewer{session: s, flags: f, timeline: newTimeline(), open: map[types.UID]bool{}, lost: map[types.UID]int32{}}
	if f.table {
		v.table = newWatchTable(s)
	}
	return v
}

func (v *viewer) run(ctx context.Context, c cluster) error {
	warn := func(text string) { v.err.Printf("%s\n", terminal.Line(text)) }
	if v.table != nil {
		warn = v.table.warn
		var drawing sync.WaitGroup
		drawn, stop := context.WithCancel(ctx)
		drawing.Go(func() { v.table.run(drawn) })
		defer drawing.Wait()
		defer stop()
	}
	err := c.listWatch(ctx, listWatchOptions{onChange: v.update, onListed: v.listed, warn: warn})
	if err != nil {
		return err
	}
	if v.failure != nil {
		return v.failure
	}
	return v.verdict()
}

func (v *viewer) update(in *v1beta1.Interruption) bool {
	if v.only != "" && !isAbout(in, v.only) {
		return false
	}
	if v.failure = v.show(in); v.failure != nil {
		return true
	}
	v.open[in.UID] = !record.IsSettled(in) && !isPostponed(in)
	v.lost[in.UID] = record.Drain(&in.Status).PodCounts.Lost
	return v.isDone()
}

// show prints the new entries of a record.
func (v *viewer) show(in *v1beta1.Interruption) error {
	if v.table != nil {
		v.table.update(in)
		return nil
	}
	for _, e := range v.timeline.news(in) {
		if err := v.write(e); err != nil {
			return err
		}
	}
	return nil
}

// isDone reports whether everything observed has ended. It returns false until
// the first list is complete; listed then checks again.
func (v *viewer) isDone() bool {
	if !v.flags.untilDone || !v.complete || len(v.open) == 0 {
		return false
	}
	return !slices.Contains(slices.Collect(maps.Values(v.open)), true)
}

func (v *viewer) listed() bool {
	v.complete = true
	if v.table != nil {
		v.table.markListed()
		return v.flags.once || v.isDone()
	}
	if v.flags.once || v.isDone() {
		if len(v.open) == 0 {
			v.err.Printf("no interruptions%s\n", v.ofWhat())
		}
		return true
	}
	if len(v.open) == 0 {
		v.err.Printf("no interruptions%s yet; waiting\n", v.ofWhat())
	}
	return false
}

func (v *viewer) ofWhat() string {
	if v.only == "" {
		return ""
	}
	return " of " + v.only
}

func (v *viewer) write(e entry) error {
	if !v.isJSON() {
		v.out.Printf("%s", e.line(v.out))
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	v.out.Printf("%s\n", terminal.JSON(line))
	return nil
}

func (v *viewer) verdict() error {
	if !v.flags.untilDone {
		return nil
	}
	return lostError(v.lost)
}

// lostError returns an error if any pod was lost.
func lostError(lost map[types.UID]int32) error {
	var sum int32
	for _, n := range lost {
		sum += n
	}
	if sum == 0 {
		return nil
	}
	return fmt.Errorf("lost %s: they were still on their node when its instance stopped", counted(int(sum), "pod"))
}
