package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

const (
	mostNodes = 50
	// firstReal is the default number of real nodes.
	firstReal = 2
	// ordinaryScenario has the workloads of an ordinary cluster.
	ordinaryScenario = "ordinary-world"
)

// nodesFlag is the number of nodes, and their kind: 3, real or real:3.
type nodesFlag struct {
	count int
	real  bool
}

func (f *nodesFlag) String() string {
	if f.real {
		return "real:" + strconv.Itoa(f.count)
	}
	return strconv.Itoa(f.count)
}

// Type is the value's name in the help.
func (f *nodesFlag) Type() string { return "N, real or real:N" }

// Set reads the value.
func (f *nodesFlag) Set(text string) error {
	if text == "real" {
		*f = nodesFlag{real: true, count: firstReal}
		return nil
	}
	number, isReal := strings.CutPrefix(text, "real:")
	n, err := strconv.Atoi(number)
	if err != nil {
		return errors.New("write a number, real or real:N")
	}
	*f = nodesFlag{real: isReal, count: n}
	return nil
}

func newSandboxUp(s *session) *cobra.Command {
	var f superviseFlags
	var nodes nodesFlag
	var workloads bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a sandbox up, and leave it running",
		Long: `Bring a sandbox up, and leave it running. The first time it builds Kubernetes,
which takes some minutes; after that it takes seconds.

Every instance that is launched in its EC2 becomes a node, 30 to 60 s after its
launch, as on an ordinary cluster. --nodes launches the first spot instances.
They are nodes after 2 s, so that you need not wait. With --boot-delay, all
instances take that time. --workloads applies Deployments with budgets, a
StatefulSet with a volume, a DaemonSet, Jobs, and an admission policy that refuses
what has no label team.

Nodes are simulated: a Node is Ready, and its pods run no containers. With
--nodes real, each instance is a set of namespaces of this machine. It has its
own containerd, kubelet and kube-proxy, and runs containers and hooks. That
needs Linux, root, runc and nft.

With --karpenter, unmodified Karpenter launches nodes for pods in the emulated
AWS. It needs an EC2NodeClass and a NodePool first. Subnets, security groups and
other resources have the tag karpenter.sh/discovery=sandbox. Its metrics and
health ports are open on all addresses of this machine, because Karpenter has no
option for the address.

Karpenter receives no interruptions then: Lifeboat handles them. With
--karpenter-queue, Karpenter also has a queue of its own, with the rules of its own
installation, and handles interruptions itself. Add --no-lifeboat to see Karpenter
alone. sandbox logs karpenter prints its log.

With --unkind, the emulated AWS answers as badly as AWS documents. Messages come
in any order, and some come twice. EC2 and Auto Scaling describe instances as
they were seconds ago, and throttle calls beyond the quotas of a new account.
Instance metadata shows notices late, and fails some requests.`,
		Example: `  lifeboat sandbox up --nodes 3
  sudo -E lifeboat sandbox up --nodes real
  lifeboat sandbox up --karpenter
  lifeboat sandbox up --karpenter --karpenter-queue karpenter --no-lifeboat
  lifeboat sandbox up --nodes 3 --unkind 1
  lifeboat sandbox up --nodes 3 --workloads
  lifeboat sandbox up --sandbox second --boot-delay 30s
  eval "$(lifeboat sandbox env)" && kubectl get nodes`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkUp(&f, nodes.count); err != nil {
				return err
			}
			f.real = nodes.real
			return s.up(cmd.Context(), f, nodes.count, workloads)
		},
	}
	f.add(cmd)
	cmd.Flags().Var(&nodes, "nodes", "how many spot instances to launch as nodes; real makes them real")
	cmd.Flags().BoolVar(&workloads, "workloads", false, "apply the workloads of an ordinary cluster: those of the scenario "+ordinaryScenario)
	return cmd
}

func checkUp(f *superviseFlags, nodes int) error {
	switch {
	case nodes < 0 || nodes > mostNodes:
		return command.UsageErrorf("--nodes %d is out of range: 0 to %d", nodes, mostNodes)
	case f.karpenterQueue != "" && !f.karpenter:
		return command.UsageErrorf("--karpenter-queue is a queue for Karpenter: add --karpenter")
	}
	return nil
}

func (s *session) up(ctx context.Context, f superviseFlags, nodes int, workloads bool) error {
	self, err := f.command(s)
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	name := s.selected()
	if status, err := s.sandboxes.inspect(name); err == nil && status.Running {
		return fmt.Errorf("the sandbox %s is up already; `%s sandbox status` shows it, `%s sandbox down` takes it down", name, s.name, s.name)
	} else if err != nil && !errors.Is(err, sandbox.ErrNotRunning) {
		return err
	}
	options := f.options(s)
	render, finish := s.steps()
	options.Progress = render
	state, err := s.sandboxes.start(ctx, options, self)
	finish()
	if err != nil {
		return err
	}
	if nodes > 0 {
		if err := s.launch(ctx, state, nodes, f.firstBoot()); err != nil {
			return fmt.Errorf("the sandbox %s is up, but without all its nodes: %w", name, err)
		}
	}
	if workloads {
		if err := s.applyOrdinary(ctx, state); err != nil {
			return fmt.Errorf("the sandbox %s is up, but without its workloads: %w", name, err)
		}
	}
	if s.isJSON() {
		return s.writeJSON(state)
	}
	s.greet(state)
	return nil
}

// applyOrdinary creates the workloads of an ordinary cluster.
func (s *session) applyOrdinary(ctx context.Context, state sandbox.State) error {
	sc, err := readScenario(ordinaryScenario)
	if err != nil {
		return err
	}
	c, err := s.connect(state)
	if err != nil {
		return err
	}
	return scenario.CreateAll(ctx, c, sc.Files["workloads.yaml"], func(*unstructured.Unstructured) {})
}

// greet explains how to use a new sandbox.
func (s *session) greet(state sandbox.State) {
	flag := ""
	if state.Name != sandbox.DefaultName {
		flag = " --sandbox " + state.Name
	}
	s.out.Printf("\n%s is up. To point kubectl and the AWS CLI at it:\n\n", s.out.Paint(terminal.Bold, "the sandbox "+state.Name))
	for line := range strings.Lines(state.Exports()) {
		s.out.Printf("  %s\n", strings.TrimSuffix(line, "\n"))
	}
	s.out.Printf("\nor: eval \"$(%s sandbox env%s)\"\n", s.name, flag)
	s.out.Printf("To take it down: %s sandbox down%s\n", s.name, flag)
}
