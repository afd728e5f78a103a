package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// fleetRequests is how many clusters are read at the same time.
const fleetRequests = 8

// The states of a cluster in a fleet.
const (
	fleetOK          = "ok"
	fleetWarning     = "warning"
	fleetBroken      = "broken"
	fleetUnreachable = "unreachable"
)

// member is one cluster of a fleet.
type member struct {
	Context string `json:"context"`
	State   string `json:"state"`
	// Error says why the cluster could not be read.
	Error string `json:"error,omitempty"`
	*statusReport
}

// fleetFlags select several clusters.
type fleetFlags struct {
	contexts []string
	all      bool
}

func (f fleetFlags) given() bool { return f.all || len(f.contexts) > 0 }

// fleetStatus shows one line for each cluster, and what waits for a person in all of them.
func (s *session) fleetStatus(ctx context.Context, f fleetFlags) error {
	if s.flags.Sandbox != "" || s.flags.Overrides.CurrentContext != "" || f.all && len(f.contexts) > 0 {
		return usageErrorf("write one of --context, --contexts, --all-contexts and --sandbox (or its variable %s)", sandboxstate.NameEnv)
	}
	names := f.contexts
	if slices.Contains(names, "") {
		return usageErrorf("--contexts has an empty name: write such as prod-eu,prod-us")
	}
	if f.all {
		var err error
		if names, err = s.allContexts(); err != nil {
			return err
		}
	}
	fleet := s.readFleet(ctx, names)
	var err error
	if s.isJSON() {
		err = s.writeJSON(map[string][]member{"clusters": fleet})
	} else {
		s.writeFleet(fleet)
	}
	switch has := func(states ...string) bool {
		return slices.ContainsFunc(fleet, func(m member) bool { return slices.Contains(states, m.State) })
	}; {
	case err != nil:
		return err
	case has(fleetBroken, fleetUnreachable):
		return exitError{Code: exitBroken}
	case slices.ContainsFunc(fleet, func(m member) bool { return m.statusReport != nil && len(m.Needs) > 0 }):
		return exitError{Code: exitNeedsPerson}
	}
	return nil
}

// allContexts returns the contexts of the kubeconfig, sorted.
func (s *session) allContexts() ([]string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.flags.Kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, usageErrorf("the kubeconfig has no context: set KUBECONFIG or --kubeconfig")
	}
	slices.Sort(names)
	return names, nil
}

// readFleet reads the clusters at the same time.
func (s *session) readFleet(ctx context.Context, names []string) []member {
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	progress.Step("reading %s", counted(len(names), "cluster"))
	fleet := make([]member, len(names))
	var all errgroup.Group
	all.SetLimit(fleetRequests)
	for i, name := range names {
		all.Go(func() error {
			fleet[i] = s.readMember(ctx, name)
			return nil
		})
	}
	_ = all.Wait() // an error is part of its member
	return fleet
}

// readMember reads one cluster.
func (s *session) readMember(ctx context.Context, name string) member {
	// Commands for a person name the cluster, and one progress line is enough.
	one := *s
	one.name, one.err = s.name+" --context "+shellWord(name), terminal.NewStream(io.Discard, s.env.Getenv)
	m := member{Context: name, State: fleetUnreachable}
	c, err := s.connectTo(ctx, name)
	if err == nil {
		m.statusReport, err = one.readStatus(ctx, c)
	}
	switch {
	case err != nil:
		m.Error, m.statusReport = err.Error(), nil
	case finding.Has(m.Problems, finding.Broken):
		m.State = fleetBroken
	case len(m.Problems) > 0:
		m.State = fleetWarning
	default:
		m.State = fleetOK
	}
	return m
}

// worst is the worst problem of the cluster, or else its health.
func (m member) worst() string {
	for _, severity := range []finding.Severity{finding.Broken, finding.Warning} {
		for _, p := range m.Problems {
			if p.Severity == severity {
				return p.Object + ": " + p.Problem
			}
		}
	}
	return m.Health
}

// plainWord matches words that no shell changes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@:./+-]+$`)

// shellWord quotes a word for a shell if that is necessary.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// connectContext connects to the cluster of a context.
func (s *session) connectContext(ctx context.Context, name string) (cluster, error) {
	one := *s
	one.flags.Overrides.CurrentContext = name
	return one.connectKubernetes(ctx)
}

// writeFleet writes the fleet for people.
func (s *session) writeFleet(fleet []member) {
	styles := map[string]terminal.Style{fleetOK: terminal.Good, fleetWarning: terminal.Warn, fleetBroken: terminal.Bad, fleetUnreachable: terminal.Bad}
	table := terminal.NewTable("CONTEXT", "STATE", "UNDER WAY", "DEADLINE", "NEEDS", "HEALTH")
	var needs []record.Need
	for _, m := range fleet {
		cells := []string{"", "", "", m.Error}
		if m.statusReport != nil {
			deadline := "-"
			if d := m.UnderWay.NearestDeadline; d != nil {
				deadline = terminal.Relative(d.Time.Time, s.now())
			}
			cells = []string{fmt.Sprint(m.UnderWay.Interruptions), deadline, fmt.Sprint(len(m.Needs)), m.worst()}
			needs = append(needs, m.Needs...)
		}
		row := []terminal.Cell{{Text: m.Context}, {Text: m.State, Style: styles[m.State]}}
		for _, text := range cells {
			row = append(row, terminal.Cell{Text: text})
		}
		table.Row(row...)
	}
	table.Write(s.out)
	record.SortNeeds(needs)
	s.writeNeeds(needs)
	if slices.ContainsFunc(fleet, func(m member) bool { return m.State == fleetUnreachable }) {
		s.out.Printf("\nA cluster could not be read: what waits there is not known.\n")
	}
}
