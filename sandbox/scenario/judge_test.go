package scenario_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/judge"
)

// exempt are the rules that a scenario breaks on purpose.
var exempt = map[string][]string{
	// The queue receives no warning, and no agent runs.
	"misspelt-rule-alone": {"notice-recorded", "pods-not-cut"},
	// Lifeboat does not run.
	"karpenter-deadline-alone": {"notice-recorded", "pods-not-cut"},
}

// observer collects what the judge reads: the audit log of the API server and the calls to the
// cloud.
type observer struct {
	log string

	mu    sync.Mutex
	cloud []judge.CloudEvent
}

// observe makes the API server of a sandbox write an audit log.
func observe(t *testing.T, o *sandbox.Options) *observer {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(judge.Policy), 0o600); err != nil {
		t.Fatal(err)
	}
	o.APIServerArgs = append(o.APIServerArgs, "--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking")
	return &observer{log: log}
}

// connect subscribes to the cloud of the sandbox before anything runs there.
func (o *observer) connect(sb *sandbox.Sandbox) {
	sb.EC2().Subscribe(func(c ec2.Change) {
		kinds := map[ec2.What]judge.CloudKind{ec2.Warned: judge.Warned, ec2.PowerOff: judge.PowerOff}
		if kind, ok := kinds[c.What]; ok {
			o.add(kind, c.Instance.ID, false)
		}
	})
	sb.AWS().Gate.Watch(func(r *wire.Request, failure *wire.Error) {
		ours := strings.Contains(r.UserAgent(), "app/lifeboat-controller")
		switch {
		case failure != nil:
		case r.Action == "TerminateInstances":
			for name, values := range r.Form {
				if strings.HasPrefix(name, "InstanceId.") {
					o.add(judge.Terminate, values[0], ours)
				}
			}
		case r.Action == "CompleteLifecycleAction":
			o.add(judge.HookCompleted, r.Form.Get("InstanceId"), ours)
		}
	})
}

func (o *observer) add(kind judge.CloudKind, instance string, ours bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cloud = append(o.cloud, judge.CloudEvent{Time: time.Now(), Kind: kind, Instance: instance, ByLifeboat: ours})
}

// judge reports each broken promise.
func (o *observer) judge(t *testing.T, scenario string, factor float64) {
	t.Helper()
	file, err := os.Open(o.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requests, err := judge.ReadAudit(file)
	if err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	history, err := judge.NewHistory(requests, o.cloud, judge.Options{Delay: time.Duration(factor * float64(10*time.Second)), End: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	writes, pods, asks, records := history.Size()
	t.Logf("judged %d writes: %d pods, %d requests to stop, %d Interruptions, %d cloud events", writes, pods, asks, records, len(o.cloud))
	if writes == 0 {
		t.Error("the audit log is empty: nothing was judged")
	}
	for _, v := range history.Judge() {
		if !slices.Contains(exempt[scenario], v.Rule) {
			t.Errorf("broken promise: %s", v)
		}
	}
}
