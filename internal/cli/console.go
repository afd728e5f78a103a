package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/console"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

type consoleFlags struct {
	address string
	port    int
}

func newConsole(s *session) *cobra.Command {
	f := consoleFlags{address: "127.0.0.1", port: 8474}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve a read-only web page about interruptions",
		Long: `Serve a web page on this machine until Ctrl-C. It shows live:
  - what is under way, with countdowns, and what waits for a person
  - one interruption as a time line, with a lane for each pod
  - the history, and the health of the wiring
  - what an interruption of any node would do to its pods

The page only reads the cluster, with the rights of your kubeconfig. Everyone who
can open the address sees the page. The default address is open to users of this
machine only.`,
		Example: `  lifeboat console
  lifeboat console --context prod --port 9000`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.port < 0 || f.port > 65535 {
				return usageErrorf("invalid --port %d: write a number from 0 to 65535", f.port)
			}
			if s.isJSON() {
				return usageErrorf("console has no -o json: use `lifeboat status -o json` or `lifeboat watch -o json`")
			}
			return s.console(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.address, "address", f.address, "address to listen on; other machines can open the page at any address but loopback")
	flags.IntVar(&f.port, "port", f.port, "port to listen on; 0 takes a free one")
	return cmd
}

func (s *session) console(ctx context.Context, f consoleFlags) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(f.address, strconv.Itoa(f.port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s port %d: another program uses it; choose another --port, or 0 for a free one", f.address, f.port)
	} else if err != nil {
		return fmt.Errorf("listening on %s: %w; check --address", f.address, err)
	}
	hosts := consoleHosts(listener.Addr())
	name := c.name
	if name == "" {
		name = "the cluster"
	}
	s.out.Printf("The console of %s is at http://%s/ (Ctrl-C ends it)\n", name, hosts[0])
	err = console.New(s.consoleOptions(c, hosts)).Serve(ctx, listener)
	if ctx.Err() != nil {
		return nil // Ctrl-C is how a user ends it
	}
	return err
}

func (s *session) consoleOptions(c cluster, hosts []string) console.Options {
	return console.Options{
		Client: c, Cluster: c.name, Program: s.name, Timeout: c.requestTimeout, Now: s.now, Hosts: hosts,
		Health: func(ctx context.Context) view.Health {
			d := &doctorRun{session: s, kube: &c, progress: terminal.NewProgress(terminal.NewStream(io.Discard, s.env.Getenv))}
			text, problems := d.readHealth(ctx)
			return view.Health{Text: text, Problems: problems}
		},
		Nodes: func(ctx context.Context) ([]string, error) {
			nodes, err := c.nodes(ctx)
			names := make([]string, 0, len(nodes))
			for i := range nodes {
				names = append(names, nodes[i].Name)
			}
			slices.Sort(names)
			return names, err
		},
		Plan: func(ctx context.Context, r console.PlanRequest) (view.Plan, error) {
			f := defaultPlanFlags()
			f.kind, f.in, f.code = r.Kind, r.In, r.Code
			if err := f.check(); err != nil {
				return view.Plan{}, err
			}
			p, err := s.planOne(ctx, c, f, r.Node)
			if err != nil {
				return view.Plan{}, err
			}
			return p.view(s.name, r, s.now()), nil
		},
	}
}

// consoleHosts returns the values of the header Host for an address. The first one is shown.
func consoleHosts(address net.Addr) []string {
	at, ok := address.(*net.TCPAddr)
	if !ok {
		return []string{address.String()}
	}
	port := strconv.Itoa(at.Port)
	hosts := []string{net.JoinHostPort(at.IP.String(), port)}
	switch {
	case at.IP.IsLoopback():
		hosts = append(hosts, net.JoinHostPort("localhost", port))
	case at.IP.IsUnspecified(): // reachable at each address of this machine
		own, _ := net.InterfaceAddrs()
		hosts = nil
		for _, a := range own {
			if network, ok := a.(*net.IPNet); ok {
				hosts = append(hosts, net.JoinHostPort(network.IP.String(), port))
			}
		}
		hosts = append(hosts, net.JoinHostPort("localhost", port))
	}
	return hosts
}

// view returns the plan as the console shows it.
func (p planned) view(program string, r console.PlanRequest, now time.Time) view.Plan {
	name, rest := p.title()
	v := view.Plan{Title: name + ", " + rest, Lanes: []view.Lane{}, From: view.At(now), Facts: []view.Fact{{Label: "decision", Text: p.Decision.Message}}}
	v.Command = program + " plan " + r.Node
	for _, flag := range [][2]string{{"--kind", r.Kind}, {"--in", r.In}, {"--event-type-code", r.Code}} {
		if flag[1] != "" {
			v.Command += " " + flag[0] + " " + flag[1]
		}
	}
	text, fits := p.verdict(now)
	v.Verdict, v.Fixes = text, append([]string{}, p.fixes()...)
	if fits != nil && *fits {
		v.Tone = view.Good
	} else if fits != nil {
		v.Tone = view.Bad
	}
	if p.Approval != "" {
		v.Facts = append(v.Facts, view.Fact{Label: "approval", Text: p.Approval, Tone: view.Warn})
	}
	if p.Begins != nil {
		v.Facts = append(v.Facts, view.Fact{Label: "starts", Text: terminal.Relative(*p.Begins, now) + ", at " + formatClock(*p.Begins, now)})
		v.From = view.At(*p.Begins)
	}
	for _, why := range p.Waits {
		v.Facts = append(v.Facts, view.Fact{Label: "waits", Text: why, Tone: view.Warn})
	}
	for _, pod := range p.Pods {
		v.Lanes = append(v.Lanes, pod.lane(v.From, now))
	}
	v.Fit(p.Deadline)
	return v
}

// lane returns the pod's line of the time line.
func (p plannedPod) lane(from view.Millis, now time.Time) view.Lane {
	at := func(offset *float64) time.Time {
		if offset == nil {
			return time.Time{}
		}
		return now.Add(seconds(*offset))
	}
	t := view.PodTimes{
		Label: p.Namespace + "/" + p.Name, State: string(p.Step), Reason: p.Reason, Noticed: time.UnixMilli(int64(from)),
		Asked: at(p.AskedInSeconds), Gone: at(p.GoneInSeconds), LastCall: at(p.LastCallInSeconds), Grace: seconds(p.GraceSeconds),
		Stays: p.Step == drain.StepStays,
	}
	switch {
	case !p.Fits:
		t.Tone = view.Bad
		t.Reason += ". " + p.Fix
	case p.Overrides != "":
		t.Tone = view.Warn
	case !t.Stays:
		t.Tone = view.Good
	}
	if p.Now != "" {
		t.Reason = "at first: " + p.Now + "; then: " + t.Reason
	}
	return t.Lane()
}
