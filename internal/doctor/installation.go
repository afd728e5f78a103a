package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
)

// Installation is what is known about Lifeboat in the cluster.
type Installation struct {
	// CRDsMissing is true if the API server does not serve Lifeboat's API.
	CRDsMissing bool
	// Account is true if the controller's ServiceAccount exists.
	Account bool
	// Release is true if Helm has installed the chart, or if its Deployment is there, so that an
	// upgrade installs what is missing.
	Release bool
	// Process is lifeboatd in a sandbox, where it has no Deployment; nil elsewhere.
	Process *Process
	// Controller is the Deployment, and Agents the DaemonSet; nil if there is none.
	Controller, Agents *Program
	// Lease is that of the leader; nil if there is none, or if it could not be read.
	Lease *Lease
	// Failed are the reads that failed.
	Failed []Unread
}

// Unread is a part of the installation that could not be read.
type Unread struct {
	Part Part
	Err  error
}

// Part is a part of the installation that is read separately.
type Part string

// The parts of an installation.
const (
	PartSandbox    Part = "the sandbox"
	PartAPI        Part = "its API"
	PartController Part = "its controller"
	PartLeader     Part = "its leader"
	PartAgents     Part = "its agents"
)

// IsUnread reports whether one of the parts could not be read.
func (i Installation) IsUnread(parts ...Part) bool {
	return slices.ContainsFunc(i.Failed, func(u Unread) bool { return slices.Contains(parts, u.Part) })
}

// Process is a process of lifeboatd.
type Process struct{ Alive bool }

// Program is a workload of Lifeboat's chart.
type Program struct {
	Object, Version string
	// Queue is the URL of the queue in its arguments.
	Queue          string
	Desired, Ready int
	// Waiting is why a container does not run, for example CrashLoopBackOff.
	Waiting string
}

// Lease is a lease of a leader election.
type Lease struct {
	Holder  string
	Renewed time.Time
	// Duration is the time without renewal after which another replica takes over.
	Duration time.Duration
}

// leaseSlack is added to the duration of a lease: the clocks of two machines differ.
const leaseSlack = 30 * time.Second

func (l *Lease) alive(now time.Time) bool {
	return l != nil && l.Holder != "" && now.Before(l.Renewed.Add(l.Duration+leaseSlack))
}

// Running returns the number of ready controllers, or nil if it is not known: a leader
// can also run outside of the Deployment.
func (i Installation) Running(now time.Time) *int {
	n := 0
	switch {
	case i.Controller != nil:
		n = i.Controller.Ready
	case i.Process != nil && i.Process.Alive, i.Lease.alive(now), i.IsUnread(PartSandbox, PartController, PartLeader):
		return nil
	}
	return &n
}

// Findings reports what keeps Lifeboat from acting on notices. queue is the name of the
// checked queue; empty if there is none.
func (i Installation) Findings(queue string, now time.Time) []finding.Finding { //nolint:gocyclo // one case for each finding, in their order
	const object = "deployment lifeboat-system/lifeboat-controller"
	var all []finding.Finding
	add := func(severity finding.Severity, id, object, problem, fix string) {
		all = append(all, finding.Finding{Severity: severity, ID: id, Object: object, Problem: problem, Fix: fix})
	}
	for _, u := range i.Failed {
		add(finding.Unknown, idLifeboatNotChecked, "Lifeboat in the cluster", fmt.Sprintf("%s was not checked: %v", u.Part, u.Err), "allow get and list of deployments, daemonsets, pods and leases in lifeboat-system and the namespace of the agents, or check --context")
	}
	install := installed.Upgrade("")
	if !i.Release {
		install = "helm install lifeboat charts/lifeboat --namespace lifeboat-system --create-namespace --set image.repository=HOST/lifeboatd " + setQueue(queue) + " (docs/guides/install.md)"
	}
	if i.CRDsMissing {
		fix := installed.ApplyCRDs
		if i.Controller == nil && i.Process == nil {
			fix = install
		}
		add(finding.Broken, idCRDsMissing, "API lifeboat.dev/v1beta1", "the cluster does not serve it, so Lifeboat cannot record a notice", fix)
	}
	switch c := i.Controller; {
	case i.Process != nil && !i.Process.Alive && c == nil && !i.Lease.alive(now):
		add(finding.Broken, idLifeboatMissing, "process lifeboatd", "it does not run in this sandbox: notices reach the queue, and no program reads them", "lifeboat sandbox down; lifeboat sandbox up, without --no-lifeboat")
	case i.Process != nil && i.Process.Alive, c == nil && i.IsUnread(PartSandbox, PartController, PartLeader):
	case c == nil && !i.Lease.alive(now):
		add(finding.Broken, idLifeboatMissing, object, "Lifeboat is not installed in this cluster: notices reach the queue, and no program reads them", install)
	case c == nil: // it runs outside of the Deployment
	case c.Desired == 0:
		add(finding.Broken, idLifeboatNotReady, c.Object, "it is scaled to 0: notices reach the queue, and no program reads them", "kubectl --namespace lifeboat-system scale deployment lifeboat-controller --replicas 2")
	case c.Ready == 0:
		add(finding.Broken, idLifeboatNotReady, c.Object, fmt.Sprintf("none of its %d replicas is ready%s: no program acts on notices", c.Desired, c.reason()), logsCommand)
	default:
		all = append(all, i.leaderFindings(*c, now)...)
	}
	if c := i.Controller; c != nil && queue != "" && c.Queue != "" && !(&Tool{Queue: c.Queue}).reads(queue) {
		add(finding.Broken, idLifeboatOtherQueue, c.Object, fmt.Sprintf("it reads the queue %s, and this check is about %s: what arrives in %s is not read", c.Queue, queue, queue),
			installed.Upgrade(setQueue(queue))+"; or check the other queue with --queue-url "+c.Queue)
	}
	if c, a := i.Controller, i.Agents; c != nil && a != nil && c.Version != a.Version && c.Version != "" && a.Version != "" {
		add(finding.Warning, idLifeboatVersions, a.Object, fmt.Sprintf("the agents have version %s and the controller %s: a part of an upgrade is missing", a.Version, c.Version),
			installed.Upgrade(""))
	}
	return all
}

// setQueue is the flag of Helm with the URL of a queue.
func setQueue(queue string) string {
	if queue == "" {
		return "--set-string aws.queueURL=URL"
	}
	return `--set-string aws.queueURL="$(aws sqs get-queue-url --queue-name ` + queue + ` --query QueueUrl --output text)"`
}

const logsCommand = "kubectl --namespace lifeboat-system get pods; kubectl --namespace lifeboat-system logs deployment/lifeboat-controller"

// leaderFindings reports a Deployment whose replicas are ready, and that does not act
// or is not complete.
func (i Installation) leaderFindings(c Program, now time.Time) []finding.Finding {
	if !i.Lease.alive(now) && !i.IsUnread(PartLeader) {
		problem := "no replica is the leader: there is no lease lifeboat-controller"
		if i.Lease != nil {
			problem = fmt.Sprintf("no replica is the leader: %s last renewed the lease at %s", i.Lease.Holder, i.Lease.Renewed.UTC().Format(time.RFC3339))
		}
		return []finding.Finding{{
			Severity: finding.Broken, ID: idLifeboatNoLeader, Object: c.Object,
			Problem: problem + ". Replicas record notices, but only the leader drains nodes", Fix: logsCommand,
		}}
	}
	if c.Ready < c.Desired {
		return []finding.Finding{{
			Severity: finding.Warning, ID: idLifeboatFewReplicas, Object: c.Object,
			Problem: fmt.Sprintf("%d of its %d replicas are ready%s: an interruption of the node of the leader has no standby", c.Ready, c.Desired, c.reason()), Fix: logsCommand,
		}}
	}
	return nil
}

func (p Program) reason() string {
	if p.Waiting == "" {
		return ""
	}
	return " (" + p.Waiting + ")"
}

// Summary describes the installation in one line; empty if nothing is known.
func (i Installation) Summary(now time.Time) string {
	var parts []string
	if c := i.Controller; c != nil {
		parts = append(parts, strings.TrimSpace("Lifeboat "+c.Version)+fmt.Sprintf(": %d of %d controllers are ready", c.Ready, c.Desired))
	} else if i.Process != nil && i.Process.Alive {
		parts = append(parts, "Lifeboat runs as a process of the sandbox")
	} else if i.Lease.alive(now) {
		parts = append(parts, "Lifeboat runs outside of its Deployment")
	} else if !i.IsUnread(PartSandbox, PartController, PartLeader) {
		parts = append(parts, "Lifeboat does not run")
	}
	if i.Lease.alive(now) {
		parts = append(parts, "the leader is "+i.Lease.Holder)
	}
	if a := i.Agents; a != nil {
		parts = append(parts, fmt.Sprintf("%d of %d agents are ready", a.Ready, a.Desired))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
