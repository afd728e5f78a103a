package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// World has all observations so far: machines, nodes, pods, workloads, and Lifeboat's records. Each
// observation has its time and returns the new moments. World is pure, and not safe for concurrent
// use.
type World struct {
	nodes        map[string]*nodeTrack // by their names in the script
	byNode       map[string]*nodeTrack // by the name of the Node
	pods         map[types.UID]*podTrack
	jobs         map[string]*jobTrack       // by namespace/name
	workloads    map[string]bool            // kind/namespace/name: all its replicas are Ready
	deployments  map[string]deploymentTrack // by kind/namespace/name
	began        time.Time                  // the first notice; zero: the clock stands still
	notice       time.Time                  // the latest one, from which the clock counts
	deadline     time.Time                  // zero: there is none
	window       time.Time                  // when it opens; zero: there is none
	jobDone      time.Time                  // when the latest Job completed; zero: none has
	requirements []*requirement

	machines       map[string]*machineTrack // by instance id
	members        map[string]*memberTrack  // of Auto Scaling groups, by instance id
	nodeGroups     map[string]*v1beta1.NodeGroup
	hookExecutions []HookExecution        // of lifecycle hooks, oldest first
	unnamed        []*nodeTrack           // launched by another tool, in order
	claims         map[string]*claimTrack // NodeClaims, by name
	services       map[string]*service    // by kind/namespace/name
	provisioner    string                 // what launches nodes besides the script, or ""
}

// nodeTrack is the observed data of one node.
type nodeTrack struct {
	name        string // its name in the script
	instance    string
	node        string // name of its Node; "": not registered yet
	interrupted bool   // by an interrupt

	ready, everReady bool
	cordoned, atRisk bool
	wasCordoned      time.Time // first
	empty            bool
	powerLost, gone  time.Time // zero: not so
	provisioned      bool      // Karpenter launched it
	protected        bool      // its Node forbids Karpenter to disrupt it
	held             bool      // its startup taint keeps pods off it
	before, now      string    // the mutable part of its Node, at the first interrupt and now

	record      *v1beta1.Interruption
	recordedIDs []string // ids of the notices in the timeline
	lastEntry   v1beta1.TimelineEntry
}

// NewWorld returns a World without observations.
func NewWorld() *World {
	return &World{
		nodes: map[string]*nodeTrack{}, byNode: map[string]*nodeTrack{},
		pods: map[types.UID]*podTrack{}, jobs: map[string]*jobTrack{}, workloads: map[string]bool{}, deployments: map[string]deploymentTrack{},
		machines: map[string]*machineTrack{}, members: map[string]*memberTrack{}, nodeGroups: map[string]*v1beta1.NodeGroup{}, claims: map[string]*claimTrack{}, services: map[string]*service{},
	}
}

// Launched records an instance of the script.
func (w *World) Launched(name, instance, node string) {
	n := &nodeTrack{name: name, instance: instance, node: node}
	w.nodes[name], w.byNode[node] = n, n
}

// Applied records a workload whose pods the scenario waits for.
func (w *World) Applied(kind, namespace, name string) {
	key := workloadKey(kind, namespace, name)
	if _, seen := w.workloads[key]; !seen {
		w.workloads[key] = false
	}
}

func workloadKey(kind, namespace, name string) string {
	return strings.Join([]string{kind, namespace, name}, "/")
}

// Workload records how many of a workload's replicas are Ready, of the wanted generation.
func (w *World) Workload(kind, namespace, name string, ready bool) {
	w.workloads[workloadKey(kind, namespace, name)] = ready
}

// Start starts the clock, or restarts it with another notice.
func (w *World) Start(notice, deadline time.Time) {
	if w.began.IsZero() {
		w.began = notice
	}
	w.notice, w.deadline = notice, deadline
	w.measure(notice)
}

// Opens records when the window opens.
func (w *World) Opens(t time.Time) { w.window = t }

// when is the time of a moment; false if its anchor has not happened.
func (w *World) when(m When) (time.Time, bool) {
	anchor := map[Anchor]time.Time{
		FromNotice: w.notice, FromDeadline: w.deadline, FromWindow: w.window, FromJob: w.jobDone,
	}[m.From]
	return anchor.Add(m.Offset), !anchor.IsZero()
}

// Started reports whether the clock runs.
func (w *World) Started() bool { return !w.notice.IsZero() }

// moment makes a line of the timeline.
func (w *World) moment(t time.Time, kind MomentKind, node, pod, text string) Moment {
	m := Moment{Time: t, Kind: kind, Node: node, Pod: pod, Text: text}
	if w.Started() {
		s := t.Sub(w.notice).Seconds()
		m.Seconds = &s
	}
	return m
}

// PowerLost records that a machine lost its power.
func (w *World) PowerLost(t time.Time, instance string) []Moment {
	n := w.byInstance(instance)
	if n == nil || !n.powerLost.IsZero() {
		return nil
	}
	n.powerLost = t
	var out []Moment
	if m := w.members[instance]; m == nil || !strings.HasPrefix(m.state, stateWarmed) {
		out = append(out, w.moment(t, MomentPowerLost, n.name, "", "the machine lost its power"))
	}
	for _, p := range w.podsOn(n) {
		if p.stays || !p.over().IsZero() {
			continue
		}
		p.powerLost = t
		out = append(out, w.ended(t, n, p))
	}
	w.measure(t)
	return out
}

// PowerRestored records that a machine has power again.
func (w *World) PowerRestored(instance string) {
	if n := w.byInstance(instance); n != nil {
		n.powerLost = time.Time{}
	}
}

func (w *World) byInstance(id string) *nodeTrack {
	for _, n := range w.nodes {
		if n.instance == id {
			return n
		}
	}
	return nil
}

// Node records a Node at time t; gone means that it was deleted.
func (w *World) Node(t time.Time, node *corev1.Node, gone bool) []Moment {
	n := w.byNode[node.Name]
	if n == nil {
		return nil
	}
	if gone {
		n.gone, n.ready = t, false
		return []Moment{w.moment(t, MomentGone, n.name, "", "the Node is deleted")}
	}
	if !n.gone.IsZero() { // it has registered again, as another
		n.gone, n.everReady, n.empty, n.cordoned, n.atRisk = time.Time{}, false, false, false, false
	}
	n.now = changeable(node)
	n.held = slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1beta1.TaintNotInService })
	return slices.Concat(w.readiness(t, n, node), w.recordMarks(t, n, node), w.recordProtection(t, n, node))
}

// changeable is the part of a Node that Lifeboat can change, as JSON.
func changeable(node *corev1.Node) string {
	text, err := json.Marshal(map[string]any{"labels": node.Labels, "annotations": node.Annotations, "spec": node.Spec})
	if err != nil {
		return err.Error() // a Node can be written
	}
	return string(text)
}

// readiness records whether a Node is Ready.
func (w *World) readiness(t time.Time, n *nodeTrack, node *corev1.Node) []Moment {
	before := n.ready
	n.ready = nodeindex.Ready(node) && !notReadyYet(node)
	switch {
	case n.ready && !n.everReady:
		n.everReady = true
		return []Moment{w.moment(t, MomentJoined, n.name, "", "node "+n.name+" is up: "+describeNode(node))}
	case !n.ready && before:
		return []Moment{w.moment(t, MomentNotReady, n.name, "", "Kubernetes marks the node NotReady")}
	default:
		return nil
	}
}

// notReadyYet reports whether a taint still keeps the scheduler off a Node, as for a moment after
// it became Ready.
func notReadyYet(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, joining)
}

// recordMarks records whether a node is cordoned or at risk.
func (w *World) recordMarks(t time.Time, n *nodeTrack, node *corev1.Node) []Moment {
	wasCordoned, wasAtRisk := n.cordoned, n.atRisk
	n.cordoned, n.atRisk = marks(node)
	switch {
	case n.cordoned && !wasCordoned:
		n.wasCordoned = cmp.Or(n.wasCordoned, t)
		return []Moment{w.moment(t, MomentCordoned, n.name, "", "cordoned: new pods are kept off")}
	case n.cordoned:
		return nil
	case n.atRisk && !wasAtRisk:
		return []Moment{w.moment(t, MomentAtRisk, n.name, "", "marked at risk: new pods prefer other nodes")}
	case wasCordoned || wasAtRisk && !n.atRisk:
		return []Moment{w.moment(t, MomentOpen, n.name, "", "restored: new pods can be scheduled")}
	default:
		return nil
	}
}

func describeNode(n *corev1.Node) string {
	l := n.Labels
	return fmt.Sprintf("%s in %s, %s", l[corev1.LabelInstanceTypeStable], l[corev1.LabelTopologyZone], n.Name)
}

// marks reports whether a Node is cordoned or at risk.
func marks(n *corev1.Node) (cordoned, atRisk bool) {
	for _, t := range n.Spec.Taints {
		cordoned = cordoned || keepsPodsOff(t)
		atRisk = atRisk || t.Key == v1beta1.TaintInterrupted
	}
	return cordoned || n.Spec.Unschedulable, atRisk
}

// podsOn lists the pods of a node, by name.
func (w *World) podsOn(n *nodeTrack) []*podTrack {
	var out []*podTrack
	for _, p := range w.pods {
		if p.node == n.node {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *podTrack) int {
		return cmp.Or(strings.Compare(a.key(), b.key()), strings.Compare(string(a.uid), string(b.uid)))
	})
	return out
}

// affected lists the pods that had to leave an interrupted node: those there when the clock started,
// and later ones.
func (w *World) affected() []*podTrack {
	var out []*podTrack
	for _, n := range w.sortedNodes() {
		if !n.interrupted {
			continue
		}
		for _, p := range w.podsOn(n) {
			if !p.stays && (p.gone.IsZero() || p.gone.After(w.began)) {
				out = append(out, p)
			}
		}
	}
	return out
}

func (w *World) sortedNodes() []*nodeTrack {
	var out []*nodeTrack
	for _, n := range w.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *nodeTrack) int { return strings.Compare(a.name, b.name) })
	return out
}
