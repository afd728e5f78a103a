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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

type watchFlags struct {
	once, untilDone, table bool
}

func newWatch(s *session) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [NODE|INSTANCE]",
		Short: "Show interruptions as they unfold",
		Long: `Show interruptions as they unfold: one line for whatever happens, with its time
since Lifeboat received the first notice, the node, what happened, and why.

With --table it is one line for each interruption instead, redrawn in place with
its phase, the time left, how many of its pods have moved, and what it waits for.

With -o json each line is a JSON object.`,
		Example: `  lifeboat watch
  lifeboat watch --table
  lifeboat watch ip-10-0-1-5.ec2.internal --until-done
  lifeboat watch --once -o json | jq -r 'select(.reason == "PodLost") | .message'`,
		Args: arguments(0, 1, "at most one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.table && s.isJSON():
				return usageErrorf("--table is for people: leave it out for -o json, which has a line for whatever happens")
			case f.table && !s.out.TTY:
				return usageErrorf("--table redraws a terminal, and standard output is none: leave it out for a line for whatever happens, or use -o json")
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
	cmd.Flags().BoolVar(&f.once, "once", false, "tell what has happened so far, and end")
	cmd.Flags().BoolVar(&f.untilDone, "until-done", false, "end when no node that was seen has a pod left to move, but for those whose time is still to come or that wait for approval; exit 1 if one was lost")
	cmd.Flags().BoolVar(&f.table, "table", false, "show one line for each interruption, redrawn in place")
	return cmd
}

// viewer is one run of `watch`.
type viewer struct {
	*session
	flags    watchFlags
	only     string
	timeline *timeline
	// table is set where a table is drawn and not lines.
	table *watchTable
	// open are the Interruptions seen, with whether they are still under way.
	open map[types.UID]bool
	// lost is how many pods each of them lost.
	lost map[types.UID]int32
	// complete is true once all that exist have been seen.
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
	warn := func(text string) { v.err.Printf("%s\n", text) }
	if v.table != nil {
		warn = v.table.warn
		var drawing sync.WaitGroup
		drawn, stop := context.WithCancel(ctx)
		drawing.Go(func() { v.table.run(drawn) })
		defer drawing.Wait()
		defer stop()
	}
	err := c.follow(ctx, followOptions{saw: v.saw, listed: v.listed, warn: warn})
	if err != nil {
		return err
	}
	if v.failure != nil {
		return v.failure
	}
	return v.verdict()
}

func (v *viewer) saw(in *v1alpha1.Interruption) bool {
	if v.only != "" && !isAbout(in, v.only) {
		return false
	}
	if v.failure = v.show(in); v.failure != nil {
		return true
	}
	v.open[in.UID] = !isSettled(in) && !isPostponed(in)
	v.lost[in.UID] = record.Drain(&in.Status).Pods.Lost
	return v.isDone()
}

// show shows what is new of a record.
func (v *viewer) show(in *v1alpha1.Interruption) error {
	if v.table != nil {
		v.table.saw(in)
		return nil
	}
	for _, e := range v.timeline.news(in) {
		if err := v.write(e); err != nil {
			return err
		}
	}
	return nil
}

// isDone reports whether all that was seen is over. While the first list is
// being read it does not know all yet, which listed makes up for.
func (v *viewer) isDone() bool {
	if !v.flags.untilDone || !v.complete || len(v.open) == 0 {
		return false
	}
	return !slices.Contains(slices.Collect(maps.Values(v.open)), true)
}

func (v *viewer) listed() bool {
	v.complete = true
	if v.table != nil {
		v.table.all()
		return v.flags.once || v.isDone()
	}
	if v.flags.once || v.isDone() {
		if len(v.open) == 0 {
			v.err.Printf("no interruption%s\n", v.ofWhat())
		}
		return true
	}
	if len(v.open) == 0 {
		v.err.Printf("no interruption%s yet; waiting\n", v.ofWhat())
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
	v.out.Printf("%s\n", line)
	return nil
}

func (v *viewer) verdict() error {
	if !v.flags.untilDone {
		return nil
	}
	return lostError(v.lost)
}

// lostError is an error if any pod was lost.
func lostError(lost map[types.UID]int32) error {
	var sum int32
	for _, n := range lost {
		sum += n
	}
	if sum == 0 {
		return nil
	}
	return fmt.Errorf("pods lost: %d were still on their node when its instance went", sum)
}
