package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// CloudKind names what happened in the cloud.
type CloudKind string

// What a journal of the cloud records.
const (
	Warned        CloudKind = "Warned"        // EC2 sent the two-minute warning
	PowerOff      CloudKind = "PowerOff"      // the instance has no power
	Terminate     CloudKind = "Terminate"     // a client called TerminateInstances
	HookCompleted CloudKind = "HookCompleted" // a client called CompleteLifecycleAction
	Acknowledged  CloudKind = "Acknowledged"  // a client deleted the message with the two-minute warning
)

// CloudEvent is an entry of the journal of the cloud.
type CloudEvent struct {
	Time     time.Time
	Kind     CloudKind
	Instance string
	// ByLifeboat reports whether the controller made the call.
	ByLifeboat bool
}

// Options say what the judge must know about a run.
type Options struct {
	// Controller is the user name of Lifeboat's controller. Default: that of the chart.
	Controller string
	// Margin is the controller's --margin. Default: 10 s.
	Margin time.Duration
	// Delay is how late a busy machine may be with what must happen. Default: 30 s.
	Delay time.Duration
	// Skew is how wrong the clock of Lifeboat's controller may have been. What it compares with a
	// deadline may be early or late by as much.
	Skew time.Duration
	// End is when the observation ended.
	End time.Time
	// Records are the Interruptions of this history that exist at its end. An API server that is killed
	// has stored requests that it has not logged.
	Records []json.RawMessage
}

func (o Options) complete() Options {
	if o.Controller == "" {
		o.Controller = "system:serviceaccount:lifeboat-system:lifeboat-controller"
	}
	if o.Margin == 0 {
		o.Margin = 10 * time.Second
	}
	if o.Delay == 0 {
		o.Delay = 30 * time.Second
	}
	return o
}

// ask is a request that a pod stops.
type ask struct {
	Request
	grace  time.Duration
	forced bool // a deletion, not an eviction
	ours   bool
}

// end is when the pod is killed.
func (a ask) end() time.Time { return a.Received.Add(a.grace) }

// pod is a pod from its creation to its end.
type pod struct {
	podObject
	created, gone time.Time
	// disrupted is when its status first said that a disruption ends it.
	disrupted time.Time
	asks      []ask
}

func (p *pod) grace() time.Duration {
	if p.Spec.Grace == nil {
		return defaultGracePeriod
	}
	return time.Duration(*p.Spec.Grace) * time.Second
}

func (p *pod) key() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

// stays reports whether the pod belongs to its node and so never moves.
func (p *pod) stays() bool {
	return p.Metadata.Annotations[annotationMirror] != "" ||
		slices.ContainsFunc(p.Metadata.OwnerReferences, func(o owner) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}

// there reports whether the pod exists at a time.
func (p *pod) there(t time.Time) bool {
	return !p.created.After(t) && (p.gone.IsZero() || p.gone.After(t))
}

// version is a state of an object, and who wrote it.
type version[T any] struct {
	at     time.Time
	by     string
	object T
}

// versions are the states of an object, oldest first.
type versions[T any] []version[T]

// before returns the last state at a time.
func (v versions[T]) before(t time.Time) *T {
	for i := len(v) - 1; i >= 0; i-- {
		if !v[i].at.After(t) {
			return &v[i].object
		}
	}
	return nil
}

func (v versions[T]) last() *T { return &v[len(v)-1].object }

// node is a Node from its creation to its deletion.
type node struct {
	versions[nodeObject]
	name    string
	deleted time.Time
}

func (n *node) instance() string { return instanceOf(n.last().Spec.ProviderID) }

// claim is a NodeClaim.
type claim struct {
	claimObject
	createdBy, deletedBy string
	created, deleted     time.Time
}

// interruption is an Interruption.
type interruption struct {
	versions[record]
	deleted   time.Time
	deletedBy string
}

// History is everything that happened, by object.
type History struct {
	o        Options
	requests []Request
	cloud    []CloudEvent

	pods    map[string]*pod  // by UID
	names   map[string]*pod  // the newest of each namespace/name
	nodes   map[string]*node // the newest of each name
	gone    []*node          // earlier ones
	claims  map[string]*claim
	records map[string]*interruption // by instance
	budgets map[string]budgetObject  // by namespace/name
	jobs    map[string]*job          // the newest of each namespace/name
	former  []*job                   // earlier ones
	bodies  bodies
}

// NewHistory replays requests, in the order in which they were stored, and a journal of the cloud.
// A write counts from when the API server received it. It was stored a little later, and a client can
// act on it before the audit log says that the response was complete.
func NewHistory(requests []Request, cloud []CloudEvent, o Options) (*History, error) {
	h := &History{
		o: o.complete(), requests: requests, cloud: cloud,
		pods: map[string]*pod{}, names: map[string]*pod{}, nodes: map[string]*node{}, claims: map[string]*claim{},
		records: map[string]*interruption{}, budgets: map[string]budgetObject{}, jobs: map[string]*job{}, bodies: bodies{},
	}
	for _, r := range requests {
		if !r.accepted() {
			continue
		}
		if err := h.replay(r); err != nil {
			return nil, fmt.Errorf("%s %s %s/%s at %s: %w", r.Verb, r.Resource, r.Namespace, r.Name, r.Completed.Format(time.RFC3339Nano), err)
		}
	}
	for _, text := range h.o.Records {
		if err := h.addUnlogged(text); err != nil {
			return nil, fmt.Errorf("the Interruptions at the end: %w", err)
		}
	}
	return h, nil
}

func (h *History) replay(r Request) error {
	switch r.Resource {
	case "pods":
		return h.replayPod(r)
	case "nodes":
		return h.replayNode(r)
	case "interruptions":
		return h.replayRecord(r)
	case "nodeclaims":
		return h.replayClaim(r)
	case "poddisruptionbudgets":
		return h.replayBudget(r)
	case "jobs":
		return h.replayJob(r)
	}
	return nil
}

// decode reads an object of a request or a response; false: there is none.
func decode(text json.RawMessage, into any) (bool, error) {
	if len(text) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("decoding the object: %w", err)
	}
	return true, nil
}

// ours reports whether Lifeboat's controller made the request.
func (h *History) ours(r Request) bool { return r.User == h.o.Controller }

// nodeAt returns the node of an instance at a time.
func (h *History) nodeAt(instance string, t time.Time) *node {
	for _, n := range h.allNodes() {
		if n.instance() == instance && n.before(t) != nil && (n.deleted.IsZero() || n.deleted.After(t)) {
			return n
		}
	}
	return nil
}

func (h *History) allNodes() []*node {
	all := slices.Clone(h.gone)
	for _, n := range h.nodes {
		all = append(all, n)
	}
	return all
}

// namedAt returns the node of a name at a time.
func (h *History) namedAt(name string, t time.Time) *node {
	for _, n := range h.allNodes() {
		if n.name == name && n.before(t) != nil && (n.deleted.IsZero() || n.deleted.After(t)) {
			return n
		}
	}
	return nil
}

// recordAt returns the Interruption of an instance at a time.
func (h *History) recordAt(instance string, t time.Time) *record {
	if i := h.records[instance]; i != nil {
		return i.before(t)
	}
	return nil
}

// onNode returns the pods of a node.
func (h *History) onNode(name string) []*pod {
	var out []*pod
	for _, p := range h.pods {
		if p.Spec.NodeName == name {
			out = append(out, p)
		}
	}
	return out
}
