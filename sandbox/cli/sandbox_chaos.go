package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

const (
	faultLasts  = 10 * time.Second // by default
	randomLasts = 5 * time.Minute
	// longestRandom is how long one fault of a random sequence lasts at most.
	longestRandom = 20 * time.Second
)

func newSandboxChaos(s *session) *cobra.Command {
	var lasts time.Duration
	var seed uint64
	cmd := &cobra.Command{
		Use:   "chaos FAULT",
		Short: "Break a part of a sandbox for a while: crashes, partitions, clocks, webhooks, floods",
		Long: `Break a part of a sandbox for a while, and repair it. ` + "`chaos list`" + ` shows the faults.
A fault ends after --for, and with Ctrl-C. A fault of a link or of a clock also
ends if this command is killed.

` + "`chaos random`" + ` applies random faults, one after the other. It prints each fault with
its time, and the seed, which repeats the sequence.`,
		Example: `  lifeboat sandbox chaos list
  lifeboat sandbox chaos cut-lifeboatd-api --for 30s
  lifeboat sandbox chaos kill-control-plane
  lifeboat sandbox chaos random --for 10m --seed 7`,
		Args: command.Arguments(1, 1, "the name of a fault, such as kill-lifeboatd"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fault, err := chaos.Find(args[0])
			if err != nil {
				return command.UsageErrorf("%s", err)
			}
			return s.applyFault(cmd.Context(), fault, lasts, seedOr(cmd, seed))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, f := range chaos.Menu() {
				names = append(names, f.Name+"\t"+f.Text)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	addFaultFlags(cmd, &lasts, &seed, faultLasts)
	cmd.AddCommand(newSandboxChaosList(s), newSandboxChaosRandom(s))
	return cmd
}

func addFaultFlags(cmd *cobra.Command, lasts *time.Duration, seed *uint64, byDefault time.Duration) {
	cmd.Flags().DurationVar(lasts, "for", byDefault, "how long it lasts")
	cmd.Flags().Uint64Var(seed, "seed", 0, "repeats the random choices of an earlier run (default: random)")
}

// seedOr is the given seed, or a random one.
func seedOr(cmd *cobra.Command, seed uint64) uint64 {
	if cmd.Flags().Changed("seed") {
		return seed
	}
	return rand.Uint64()
}

func newSandboxChaosList(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the faults",
		Example: `  lifeboat sandbox chaos list
  lifeboat sandbox chaos list -o json`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if s.isJSON() {
				type row struct {
					Name  string `json:"name"`
					Text  string `json:"text"`
					Lasts bool   `json:"lasts"`
				}
				rows := []row{}
				for _, f := range chaos.Menu() {
					rows = append(rows, row{f.Name, f.Text, f.Lasts})
				}
				return s.writeJSON(rows)
			}
			table := terminal.NewTable("FAULT", "WHAT IT DOES")
			for _, f := range chaos.Menu() {
				table.Row(terminal.Cell{Text: f.Name}, terminal.Cell{Text: f.Text})
			}
			table.Write(s.out)
			return nil
		},
	}
}

func newSandboxChaosRandom(s *session) *cobra.Command {
	var lasts time.Duration
	var seed uint64
	cmd := &cobra.Command{
		Use:     "random",
		Short:   "Apply random faults, one after the other",
		Example: `  lifeboat sandbox chaos random --for 10m --seed 7`,
		Args:    command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.applyRandomFaults(cmd.Context(), lasts, seedOr(cmd, seed))
		},
	}
	addFaultFlags(cmd, &lasts, &seed, randomLasts)
	return cmd
}

// chaosTarget is the running sandbox that is selected.
func (s *session) chaosTarget() (*chaos.Target, error) {
	status, err := s.sandboxes.inspect(s.selected())
	if err != nil {
		return nil, err
	}
	if !status.Running {
		return nil, notRunning(s.selected())
	}
	return chaos.Open(status.Dir)
}

func (s *session) applyFault(ctx context.Context, f chaos.Fault, lasts time.Duration, seed uint64) error {
	t, err := s.chaosTarget()
	if err != nil {
		return err
	}
	s.tellFault(f, lasts)
	if err := chaos.Run(ctx, t, f, lasts, seed); err != nil {
		return err
	}
	if f.Lasts {
		s.out.Printf("repaired\n")
	}
	return nil
}

func (s *session) tellFault(f chaos.Fault, lasts time.Duration) {
	duration := ""
	if f.Lasts {
		duration = " for " + terminal.Duration(lasts)
	}
	s.out.Printf("%s %s%s: %s\n", s.now().Format(time.TimeOnly), s.out.Paint(terminal.Bold, f.Name), duration, f.Text)
}

func (s *session) applyRandomFaults(ctx context.Context, lasts time.Duration, seed uint64) error {
	t, err := s.chaosTarget()
	if err != nil {
		return err
	}
	menu := t.Supported()
	s.out.Printf("%d faults, --seed %d\n", len(menu), seed)
	limited, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	err = chaos.RunRandom(limited, t, chaos.Random(seed, menu, longestRandom), func(p chaos.Planned) { s.tellFault(p.Fault, p.Lasts) })
	if err != nil {
		return fmt.Errorf("applying random faults: %w", err)
	}
	s.out.Printf("all faults are repaired\n")
	return nil
}
