package judge

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHealthyHistoryHasNoViolation(t *testing.T) {
	for _, v := range healthy(t).judge() {
		t.Error(v)
	}
}

// without removes the requests of a user that f selects.
func (s *story) without(f func(Request) bool) {
	before := len(s.requests)
	s.requests = slices.DeleteFunc(s.requests, f)
	if len(s.requests) == before {
		s.t.Fatal("nothing was removed: the planted violation is none")
	}
}

// change replaces text in the bodies of the requests for a resource and name.
func (s *story) change(resource, name, old, with string) {
	changed := false
	for i, r := range s.requests {
		if r.Resource == resource && r.Name == name && strings.Contains(string(r.Object), old) {
			s.requests[i].Object = []byte(strings.ReplaceAll(string(r.Object), old, with))
			changed = true
		}
	}
	if !changed {
		s.t.Fatalf("%s %s does not contain %s: the planted violation is none", resource, name, old)
	}
}

// planted are violations, at least one for each rule. Only the named rules may find it.
var planted = []struct {
	name  string
	plant func(*story)
	rules []string
}{
	{"the warning is not recorded", func(s *story) { s.happens(400*second, Warned, "i-d", false) }, []string{"notice-recorded"}},
	{"another kind is recorded", func(s *story) { s.change("interruptions", "i-a", kindSpot, "InstanceStatus") }, []string{"notice-recorded", "recorded-before-acknowledged"}},
	{"the message is deleted before the warning is recorded", func(s *story) { s.happens(400*second, Acknowledged, "i-d", true) }, []string{"recorded-before-acknowledged"}},
	{"an Interruption stays open without its instance", func(s *story) {
		s.record(320*second, "i-d", entry{action: "Drain", phase: "Draining", notices: []string{kindSpot}})
		s.node(321*second, lifeboat, "d", true)
		s.happens(330*second, PowerOff, "i-d", false)
		s.add(331*second, kubelet, "delete", "nodes", "", "", "d", nil, nil)
	}, []string{"settled"}},
	{"a pod that is gone stays pending for a while", func(s *story) {
		s.without(func(r Request) bool { return r.Name == "i-a" && r.Received.Equal(begin.Add(41*second)) })
	}, []string{"status-prompt"}},
	{"an annotation stays on a node that lives", func(s *story) {
		s.node(240*second, lifeboat, "b", false, func(n object) { n["metadata"].(object)["annotations"] = object{"lifeboat.dev/original-state": "{}"} })
	}, []string{"node-restored"}},
	{"an Interruption is deleted while it drains", func(s *story) {
		s.record(320*second, "i-d", entry{action: "Drain", phase: "Draining", notices: []string{kindSpot}})
		s.add(330*second, lifeboat, "delete", "interruptions", "", "", "i-d", nil, nil)
	}, []string{"record-kept"}},
	{"a completed Interruption lists a pod", func(s *story) {
		s.record(150*second, "i-a", entry{action: "Drain", phase: "Completed", completed: true, notices: []string{kindSpot}, pending: []string{"web"}, timeline: []string{reasonOverride, "default/db"}})
	}, []string{"status-prompt", "status-true"}},
	{"a pod left long before its departure in the record", func(s *story) {
		s.record(150*second, "i-a", entry{action: "Drain", phase: "Completed", completed: true, notices: []string{kindSpot}, left: []string{"web"}, timeline: []string{reasonOverride, "default/db"}})
	}, []string{"departures-true"}},
	{"a pod that is gone stays pending", func(s *story) {
		s.record(150*second, "i-a", entry{action: "Drain", phase: "Draining", notices: []string{kindSpot}, pending: []string{"db"}, timeline: []string{reasonOverride, "default/db"}})
	}, []string{"settled", "status-prompt", "status-true"}},
	{"a status is written in a loop", func(s *story) {
		for i := range 80 {
			s.record(200*second+time.Duration(i)*100*time.Millisecond, "i-b", entry{action: "Cordon", notices: []string{"RebalanceRecommendation"}})
		}
	}, []string{"no-write-loop"}},
	{"a pod of another node is evicted", func(s *story) { s.evict(50*second, "other", -1) }, []string{"only-interrupted-nodes", "cordoned-before-eviction"}},
	{"a pod is evicted although the decision is Cordon", func(s *story) {
		s.pod(2*second, "idle", "b", "ReplicaSet", 30)
		s.evict(210*second, "idle", -1)
	}, []string{"only-interrupted-nodes", "listed-before-eviction"}},
	{"a pod is evicted before it is listed", func(s *story) { s.pod(2*second, "late", "a", "ReplicaSet", 5); s.evict(50*second, "late", -1) }, []string{"listed-before-eviction"}},
	{"a pod is evicted before the cordon", func(s *story) {
		s.without(func(r Request) bool { return r.Resource == "nodes" && r.Name == "a" && r.User == lifeboat })
	}, []string{"cordoned-before-eviction"}},
	{"a pod is evicted before another node is cordoned", func(s *story) {
		s.record(10*second, "i-d", entry{action: "Drain", phase: "Draining", deadline: 130 * second, notices: []string{kindSpot}})
	}, []string{"all-cordoned-first"}},
	{"a pod of a DaemonSet is evicted", func(s *story) { s.evict(50*second, "log", -1) }, []string{"daemons-stay", "listed-before-eviction"}},
	{"an eviction shortens the grace", func(s *story) { s.shortenEviction("web", 2) }, []string{"grace-kept"}},
	{"a second request shortens the grace", func(s *story) { s.remove(20*second, lifeboat, "web", 3) }, []string{"grace-not-shortened"}},
	{"a budget is overridden early", func(s *story) { s.moveRemoval("db", 30*second) }, []string{"budget-respected"}},
	{"a budget is overridden before a soft deadline", func(s *story) { s.change("interruptions", "i-a", `"Hard"`, `"Soft"`) }, []string{"budget-respected"}},
	{"the override is not reported", func(s *story) { s.change("interruptions", "i-a", reasonOverride, "Deleted") }, []string{"override-reported"}},
	{"a pod loses power unasked", func(s *story) { s.pod(5*second, "left", "a", "ReplicaSet", 30) }, []string{"pods-not-cut"}},
	{"a pod of a Job is deleted without a reason", func(s *story) { s.without(statesDisruption) }, []string{"disruption-stated"}},
	{"a pod of a Job gets the reason too late", func(s *story) {
		s.without(statesDisruption)
		s.disrupt(114500*time.Millisecond, "sum", "a", "sum")
	}, []string{"disruption-stated"}},
	{"a Job fails because an instance has no power", func(s *story) {
		s.podOfJob(126*second, "sum-2", "a", "sum", 20) // the scheduler was late
		s.remove(132*second, "system:node-controller", "sum-2", 0)
		s.job(133*second, "sum", "BackoffLimitExceeded")
	}, []string{"jobs-go-on"}},
	{"a Job fails because of an interruption", func(s *story) { s.job(116*second, "sum", "BackoffLimitExceeded") }, []string{"jobs-go-on"}},
	{"a pod of another node is changed", func(s *story) {
		s.add(50*second, lifeboat, "patch", "pods", "", "default", "other", nil, object{"kind": "Status"})
	}, []string{"foreign-pods"}},
	{"a node without a notice is cordoned", func(s *story) { s.node(50*second, lifeboat, "d", true) }, []string{"foreign-nodes"}},
	{"a label of others is removed", func(s *story) {
		s.node(220*second, lifeboat, "b", true, func(n object) { n["metadata"].(object)["labels"] = object{} })
	}, []string{"own-node-fields"}},
	{"a taint of others is added", func(s *story) {
		s.node(220*second, lifeboat, "b", true, func(n object) {
			n["spec"].(object)["taints"] = []object{{"key": taintInterrupted}, {"key": "team", "effect": "NoExecute"}}
		})
	}, []string{"own-node-fields"}},
	{"a node that lives stays cordoned", func(s *story) {
		s.without(func(r Request) bool {
			return r.Resource == "nodes" && r.Name == "b" && r.Received.Equal(begin.Add(230*second))
		})
	}, []string{"node-restored"}},
	{"a second replacement is created", func(s *story) { s.claim(50*second, lifeboat, "create", "claim-new-2", "i-new-2", "i-a") }, []string{"one-replacement"}},
	{"a NodeClaim without a notice is deleted", func(s *story) {
		s.claim(0, karpenter, "create", "claim-d", "i-d", "")
		s.claim(50*second, lifeboat, "delete", "claim-d", "i-d", "")
	}, []string{"claim-deleted-for-notice"}},
	{"an instance is terminated without a cause", func(s *story) { s.happens(50*second, Terminate, "i-d", true) }, []string{"terminated-for-cause"}},
	{"an instance is terminated twice", func(s *story) {
		s.record(5*second, "i-d", entry{action: "Terminate", notices: []string{"InstanceStatus"}})
		s.node(6*second, lifeboat, "d", true)
		s.happens(50*second, Terminate, "i-d", true)
		s.happens(51*second, Terminate, "i-d", true)
	}, []string{"terminated-once"}},
	{"a hook is completed before the drain", func(s *story) { s.happens(20*second, HookCompleted, "i-a", true) }, []string{"hook-after-drain"}},
	{"a drill completes a hook", func(s *story) { s.happens(304*second, HookCompleted, "i-c", true) }, []string{"drill-harmless"}},
	{"a drill deletes a NodeClaim", func(s *story) {
		s.claim(0, karpenter, "create", "claim-c", "i-c", "")
		s.claim(302*second, lifeboat, "delete", "claim-c", "i-c", "")
	}, []string{"drill-harmless", "claim-deleted-for-notice"}},
	{"a drill kills a pod", func(s *story) { s.remove(302500*time.Millisecond, lifeboat, "job", 0) }, []string{"drill-harmless", "grace-not-shortened"}},
}

// statesDisruption selects what Lifeboat writes to the status of a pod before it deletes it.
func statesDisruption(r Request) bool {
	return r.Resource == "pods" && r.Subresource == "status" && r.User == lifeboat
}

// What is no fault of Lifeboat's breaks no promise about Jobs.
func TestJobsFailForOtherReasons(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*story){
		"it takes too long": func(s *story) { s.job(116*second, "sum", "DeadlineExceeded") },
		"a pod on another node fails": func(s *story) {
			s.podOfJob(2*second, "sum-2", "d", "sum", 20)
			s.remove(60*second, kubelet, "sum-2", 0)
			s.job(116*second, "sum", "BackoffLimitExceeded")
		},
		"a person deletes a pod": func(s *story) {
			s.podOfJob(2*second, "sum-2", "d", "sum", 20)
			s.remove(60*second, someone, "sum-2", 20)
			s.job(61*second, "sum", "BackoffLimitExceeded")
		},
		"it failed before the interruption": func(s *story) { s.job(9*second, "sum", "BackoffLimitExceeded") },
		"it counts disruptions": func(s *story) {
			s.job(116*second, "sum", "BackoffLimitExceeded")
			s.change("jobs", "sum", `"Ignore"`, `"Count"`)
		},
		"a person deleted the pod before": func(s *story) {
			s.without(statesDisruption)
			s.remove(95*second, someone, "sum", 20)
		},
		"the API server was killed before it logged the reason": func(s *story) {
			s.without(statesDisruption)
			s.change("pods", "sum", `"kind":"Pod"`, `"status":{"conditions":[{"type":"DisruptionTarget","status":"True"}]},"kind":"Pod"`)
		},
		"a policy refuses the reason of the deletion": func(s *story) {
			for i := range s.requests {
				if statesDisruption(s.requests[i]) {
					s.requests[i].Code = 403
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			change(s)
			for _, v := range s.judge() {
				t.Error(v)
			}
		})
	}
}

// shortenEviction sets the grace of the eviction of a pod.
func (s *story) shortenEviction(name string, seconds int) {
	s.without(func(r Request) bool { return r.Subresource == "eviction" && r.Name == name })
	s.evict(12*second, name, seconds)
}

// moveRemoval moves Lifeboat's deletion of a pod to another time.
func (s *story) moveRemoval(name string, at time.Duration) {
	s.without(func(r Request) bool { return r.Verb == "delete" && r.Name == name && r.User == lifeboat })
	s.remove(at, lifeboat, name, 20)
}

func TestPlantedViolationsAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			s := healthy(t)
			p.plant(s)
			var rules []string
			for _, v := range s.judge() {
				t.Log(v)
				rules = append(rules, v.Rule)
			}
			slices.Sort(rules)
			want := slices.Sorted(slices.Values(p.rules))
			if got := slices.Compact(rules); !slices.Equal(got, want) {
				t.Errorf("found by %v, want %v", got, want)
			}
			for _, rule := range want {
				found[rule] = true
			}
		})
	}
	for _, rule := range Rules() {
		if !found[rule.Name] {
			t.Errorf("no planted violation of %s", rule.Name)
		}
	}
}

// The judge must not share an error with what it judges.
func TestJudgeImportsNothingOfTheProduct(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.Contains(spec.Path.Value, "lifeboat-dev") {
				t.Errorf("%s imports %s", name, spec.Path.Value)
			}
		}
	}
}

// TestKilledAPIServerLacksItsLastEntries: it stored the creation of an Interruption, and died before it
// logged that. The object itself says when it was created.
func TestKilledAPIServerLacksItsLastEntries(t *testing.T) {
	t.Parallel()
	lost := func() *story {
		s := healthy(t)
		first := slices.IndexFunc(s.requests, func(r Request) bool { return r.Resource == "interruptions" && r.Name == "i-a" })
		created := s.requests[first].Received.Truncate(second).Format(time.RFC3339)
		s.change("interruptions", "i-a", `"name":"i-a"`, `"name":"i-a","creationTimestamp":"`+created+`"`)
		s.requests = slices.Delete(s.requests, first, first+1)
		return s
	}
	for _, v := range lost().judge() {
		t.Error(v)
	}
	later := lost()
	later.change("interruptions", "i-a", `"creationTimestamp":"2026`, `"creationTimestamp":"2027`)
	if len(later.judge()) == 0 {
		t.Error("an Interruption that was created later does not break a promise")
	}
}

// TestInterruptionThatIsNotInTheLog: the API server died before it logged any write of an Interruption. A
// read at the end shows it.
func TestInterruptionThatIsNotInTheLog(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	mentions := func(r Request) bool { return r.Resource == "interruptions" && r.Name == "i-b" }
	first := slices.IndexFunc(s.requests, mentions)
	created := s.requests[first].Received.Truncate(second).Format(time.RFC3339)
	s.change("interruptions", "i-b", `"name":"i-b"`, `"name":"i-b","creationTimestamp":"`+created+`"`)
	var last json.RawMessage
	for _, r := range s.requests {
		if mentions(r) && len(r.Object) > 0 {
			last = r.Object
		}
	}
	s.requests = slices.DeleteFunc(s.requests, mentions)
	if !slices.ContainsFunc(s.judge(), func(v Violation) bool { return v.Rule == "foreign-nodes" }) {
		t.Error("a node that is marked without an Interruption breaks no promise")
	}
	s.records = []json.RawMessage{last}
	for _, v := range s.judge() {
		t.Error(v)
	}
}

// TestWrongClockIsNoViolation: with a clock that is ahead, Lifeboat acts before a deadline as early as that.
func TestWrongClockIsNoViolation(t *testing.T) {
	t.Parallel()
	early := func(skew time.Duration) (rules []string) {
		s := healthy(t)
		s.skew = skew
		s.moveRemoval("db", 95*second) // its last call is at 100 s
		for _, v := range s.judge() {
			rules = append(rules, v.Rule)
		}
		return rules
	}
	if got := early(0); !slices.Contains(got, "budget-respected") {
		t.Errorf("5 s early breaks %v without a wrong clock", got)
	}
	if got := early(5 * second); len(got) > 0 {
		t.Errorf("5 s early breaks %v with a clock that is wrong by 5 s", got)
	}
}
