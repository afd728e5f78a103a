package judge

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

type object = map[string]any

// begin is when a history begins.
var begin = time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)

const (
	lifeboat  = "system:serviceaccount:lifeboat-system:lifeboat-controller"
	kubelet   = "system:node:a"
	karpenter = "system:serviceaccount:kube-system:karpenter"
	someone   = "alice"
)

// story builds a history: what an API server and a cloud would have logged.
type story struct {
	t        *testing.T
	skew     time.Duration     // of Lifeboat's clock
	records  []json.RawMessage // at the end
	requests []Request
	cloud    []CloudEvent
}

// add logs a write that completes a millisecond after it was received.
func (s *story) add(at time.Duration, user, verb, resource, sub, namespace, name string, body, answer object) {
	s.requests = append(s.requests, Request{
		Received: begin.Add(at), Completed: begin.Add(at + time.Millisecond), User: user, Verb: verb,
		Resource: resource, Subresource: sub, Namespace: namespace, Name: name, Code: 200,
		Body: s.text(body), Object: s.text(answer),
	})
}

func (s *story) text(o object) json.RawMessage {
	if o == nil {
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s *story) happens(at time.Duration, kind CloudKind, instance string, ours bool) {
	s.cloud = append(s.cloud, CloudEvent{begin.Add(at), kind, instance, ours})
}

// node writes a node. Marks are what Lifeboat changes.
func (s *story) node(at time.Duration, user, name string, marked bool, changes ...func(object)) {
	spec := object{"providerID": "aws:///us-east-1a/i-" + name}
	metadata := object{"name": name, "uid": "uid-" + name, "labels": object{"pool": "spot"}}
	if marked {
		spec["unschedulable"] = true
		spec["taints"] = []object{{"key": taintInterrupted, "effect": "NoSchedule"}, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}
		metadata["labels"] = object{"pool": "spot", labelNoBalancer: ""}
		metadata["annotations"] = object{"lifeboat.dev/original-state": "{}"}
	}
	n := object{"metadata": metadata, "spec": spec}
	for _, change := range changes {
		change(n)
	}
	s.add(at, user, "patch", "nodes", "", "", name, nil, n)
}

// pod creates a running pod.
func (s *story) pod(at time.Duration, name, node, owner string, grace int) {
	s.add(at, someone, "create", "pods", "", "default", name, nil, object{
		"metadata": object{
			"name": name, "namespace": "default", "uid": "uid-" + name,
			"labels": object{"app": name}, "ownerReferences": []object{{"kind": owner, "name": "x"}},
		},
		"spec": object{"nodeName": node, "terminationGracePeriodSeconds": grace}, "status": object{"phase": "Running"},
	})
}

// podOfJob creates a running pod of a Job.
func (s *story) podOfJob(at time.Duration, name, node, job string, grace int) {
	s.pod(at, name, node, "Job", grace)
	s.change("pods", name, `{"kind":"Job","name":"x"}`, `{"kind":"Job","name":"`+job+`","uid":"uid-`+job+`"}`)
}

// job writes a Job that ignores disruptions; failed is the reason why it has failed, if it has.
func (s *story) job(at time.Duration, name, failed string) {
	status := object{}
	if failed != "" {
		status["conditions"] = []object{{"type": "FailureTarget", "status": "True", "reason": failed}}
	}
	s.add(at, someone, "update", "jobs", "status", "default", name, nil, object{
		"metadata": object{"name": name, "namespace": "default", "uid": "uid-" + name},
		"spec": object{"podReplacementPolicy": "Failed", "podFailurePolicy": object{"rules": []object{
			{"action": "Ignore", "onPodConditions": []object{{"type": conditionDisrupted, "status": "True"}}},
		}}},
		"status": status,
	})
}

// disrupt writes why a pod of a Job is deleted.
func (s *story) disrupt(at time.Duration, name, node, job string) {
	s.add(at, lifeboat, "patch", "pods", "status", "default", name, nil, object{
		"kind": "Pod", "metadata": object{"name": name, "namespace": "default", "uid": "uid-" + name,
			"ownerReferences": []object{{"kind": "Job", "name": job, "uid": "uid-" + job}}},
		"spec": object{"nodeName": node, "terminationGracePeriodSeconds": 20}, "status": object{"phase": "Running",
			"conditions": []object{{"type": conditionDisrupted, "status": "True", "reason": "DeletionByLifeboat"}}},
	})
}

func (s *story) budget(at time.Duration, app string) {
	s.add(at, someone, "create", "poddisruptionbudgets", "", "default", app, nil, object{
		"metadata": object{"name": app, "namespace": "default"}, "spec": object{"selector": object{"matchLabels": object{"app": app}}},
	})
}

// evict and remove ask a pod to stop; seconds below zero: with its own grace.
func (s *story) evict(at time.Duration, name string, seconds int) {
	s.add(at, lifeboat, "create", "pods", "eviction", "default", name, object{"deleteOptions": graceOf(seconds)}, object{"kind": "Status", "metadata": object{}, "status": "Success"})
}

func (s *story) remove(at time.Duration, user, name string, seconds int) {
	s.add(at, user, "delete", "pods", "", "default", name, graceOf(seconds), object{"kind": "Pod", "metadata": object{"name": name}})
}

func graceOf(seconds int) object {
	if seconds < 0 {
		return object{}
	}
	return object{"gracePeriodSeconds": seconds}
}

// entry is what a write of an Interruption says.
type entry struct {
	action, phase string
	pending, left []string
	deadline      time.Duration // from the beginning
	soft, drill   bool
	completed     bool
	timeline      []string // reason, message, …
	notices       []string // kinds
	group         string
}

func (s *story) record(at time.Duration, instance string, e entry) {
	var notices, pending, timeline []object
	for _, kind := range e.notices {
		notices = append(notices, object{"id": kind + "-1", "kind": kind, "drill": e.drill})
	}
	for _, name := range e.pending {
		pending = append(pending, object{"namespace": "default", "name": name, "uid": "uid-" + name})
	}
	for _, name := range e.left {
		pending = append(pending, object{"namespace": "default", "name": name, "uid": "uid-" + name, "state": "Left", "departureTime": begin.Add(at - time.Second)})
	}
	for pair := range slices.Chunk(e.timeline, 2) {
		timeline = append(timeline, object{"reason": pair[0], "message": pair[1]})
	}
	status := object{"phase": e.phase, "timeline": timeline, "drain": object{"pods": pending}}
	if e.group != "" {
		status["drain"] = object{"pods": pending, "replacement": object{"group": e.group}}
	}
	if e.action != "" {
		status["decision"] = object{"action": e.action}
	}
	if e.deadline != 0 {
		kind := "Hard"
		if e.soft {
			kind = "Soft"
		}
		status["deadline"] = object{"time": begin.Add(e.deadline), "type": kind}
	}
	if e.completed {
		status["completionTime"] = begin.Add(at)
	}
	s.add(at, lifeboat, "patch", "interruptions", "status", "", instance, nil, object{
		"metadata": object{"name": instance}, "spec": object{"instanceID": instance, "notices": notices}, "status": status,
	})
}

func (s *story) claim(at time.Duration, user, verb, name, instance, replaces string) {
	metadata := object{"name": name}
	if replaces != "" {
		metadata["annotations"] = object{claimInterruption: replaces}
	}
	var answer object
	if verb != "delete" {
		answer = object{"metadata": metadata, "status": object{"providerID": "aws:///us-east-1a/" + instance}}
	}
	s.add(at, user, verb, "nodeclaims", "", "", name, nil, answer)
}

// judge returns what the judge finds.
func (s *story) judge() []Violation {
	s.t.Helper()
	slices.SortStableFunc(s.requests, func(a, b Request) int { return a.Completed.Compare(b.Completed) })
	h, err := NewHistory(s.requests, s.cloud, Options{End: begin.Add(10 * time.Minute), Skew: s.skew, Records: s.records})
	if err != nil {
		s.t.Fatal(err)
	}
	return h.Judge()
}

const second = time.Second

// healthy is a history without a violation: EC2 reclaims node a. One budget holds the pod db
// until last call, and do-not-disrupt the pod sum of a Job. Node b gets a rebalance recommendation that is withdrawn. Node c is drained in
// a drill.
func healthy(t *testing.T) *story {
	s := &story{t: t}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.node(0, someone, name, false)
	}
	s.claim(0, karpenter, "create", "claim-a", "i-a", "")
	s.pod(second, "web", "a", "ReplicaSet", 30)
	s.pod(second, "db", "a", "StatefulSet", 20)
	s.pod(125*second, "cut", "a", "ReplicaSet", 20) // the scheduler was late
	s.pod(second, "log", "a", "DaemonSet", 30)
	s.pod(second, "job", "c", "Job", 5)
	s.pod(second, "other", "d", "ReplicaSet", 30)
	s.budget(second, "db")
	s.job(second, "sum", "")
	s.podOfJob(second, "sum", "a", "sum", 20)

	spot := entry{action: "Drain", phase: "Draining", deadline: 130 * second, notices: []string{kindSpot}}
	s.happens(10*second, Warned, "i-a", false)
	s.record(10500*time.Millisecond, "i-a", entry{notices: spot.notices})
	s.happens(10600*time.Millisecond, Acknowledged, "i-a", true)
	spot.pending = []string{"web", "db", "sum"}
	s.record(11*second, "i-a", spot)
	s.node(11100*time.Millisecond, lifeboat, "a", true)
	s.claim(11200*time.Millisecond, lifeboat, "create", "claim-new", "i-new", "i-a")
	s.evict(12*second, "web", -1)
	s.remove(40*second, kubelet, "web", 0)
	spot.pending = []string{"db", "sum"}
	s.record(41*second, "i-a", spot)
	s.remove(100*second, lifeboat, "db", 20)
	spot.timeline = []string{reasonOverride, "default/db deleted at its last call"}
	s.record(100200*time.Millisecond, "i-a", spot)
	s.disrupt(99900*time.Millisecond, "sum", "a", "sum")
	s.remove(100*second, lifeboat, "sum", 20)
	s.remove(114*second, kubelet, "sum", 0)
	s.remove(115*second, kubelet, "db", 0)
	s.claim(116*second, lifeboat, "delete", "claim-a", "i-a", "")
	spot.pending = []string{"cut"}
	s.record(126*second, "i-a", spot)
	s.happens(130*second, PowerOff, "i-a", false)
	s.remove(131*second, lifeboat, "cut", 0)
	s.add(140*second, karpenter, "delete", "nodes", "", "", "a", nil, nil)
	spot.pending, spot.completed, spot.phase = nil, true, "Completed"
	s.record(141*second, "i-a", spot)

	hint := entry{action: "Cordon", phase: "Cordoned", notices: []string{"RebalanceRecommendation"}}
	s.record(200*second, "i-b", hint)
	s.node(201*second, lifeboat, "b", true)
	s.node(230*second, lifeboat, "b", false)
	hint.completed, hint.phase = true, "Cancelled"
	s.record(231*second, "i-b", hint)

	drill := entry{action: "Drain", phase: "Draining", deadline: 420 * second, drill: true, notices: []string{kindSpot}, pending: []string{"job"}}
	s.record(300*second, "i-c", drill)
	s.node(301*second, lifeboat, "c", true)
	s.evict(302*second, "job", -1)
	s.remove(303*second, kubelet, "job", 0)
	s.node(304*second, lifeboat, "c", false)
	drill.pending, drill.completed, drill.phase = nil, true, "Completed"
	s.record(305*second, "i-c", drill)
	return s
}
