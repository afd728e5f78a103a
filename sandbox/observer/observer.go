// Package observer collects what the judge reads about a sandbox: the audit log of the API server and
// the journal of the cloud.
package observer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/judge"
)

// Observer is the observer of one sandbox. Its methods are safe for concurrent use.
type Observer struct {
	log string

	mu    sync.Mutex // guards the rest
	cloud []judge.CloudEvent
	from  int64 // where the history begins in the log
}

// New makes the API server of a sandbox write an audit log into a directory.
func New(dir string, o *sandbox.Options) (*Observer, error) {
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(judge.Policy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	// By default the API server begins a new file after 100 MB. A history must be in one file.
	o.APIServerArgs = append(o.APIServerArgs, "--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking",
		"--audit-log-maxsize=1000000")
	return &Observer{log: log}, nil
}

// Connect subscribes to the cloud of the sandbox. Call it before anything runs there.
func (o *Observer) Connect(sb *sandbox.Sandbox) {
	sb.EC2().Subscribe(func(c ec2.Change) {
		kinds := map[ec2.What]judge.CloudKind{ec2.Warned: judge.Warned, ec2.PowerOff: judge.PowerOff}
		if kind, ok := kinds[c.What]; ok {
			o.add(kind, c.Instance.ID, false)
		}
	})
	queue := path.Base(sb.State().QueueURL)
	sb.AWS().States.SQS.Acknowledged(func(name, body string) {
		if instance, ok := warned(body); ok && name == queue {
			o.add(judge.Acknowledged, instance, true)
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
			o.add(judge.HookCompleted, answered(r.Form, sb.AWS().States.AutoScaling.Firings()), ours)
		}
	})
}

// answered returns the instance of a call that answers a lifecycle hook. The call names the instance, or only
// the token of the action.
func answered(call url.Values, executions []autoscaling.HookExecution) string {
	for _, one := range executions {
		if one.Token == call.Get("LifecycleActionToken") {
			return one.InstanceID
		}
	}
	return call.Get("InstanceId")
}

// warned returns the instance of a two-minute warning.
func warned(body string) (instance string, ok bool) {
	var message struct {
		DetailType string `json:"detail-type"`
		Detail     struct {
			Instance string `json:"instance-id"`
		}
	}
	err := json.Unmarshal([]byte(body), &message)
	return message.Detail.Instance, err == nil && message.DetailType == "EC2 Spot Instance Interruption Warning"
}

// Forget begins a new history: what happened before is not judged.
func (o *Observer) Forget() error {
	info, err := os.Stat(o.log)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.from, o.cloud = info.Size(), nil
	return nil
}

func (o *Observer) add(kind judge.CloudKind, instance string, ours bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cloud = append(o.cloud, judge.CloudEvent{Time: time.Now(), Kind: kind, Instance: instance, ByLifeboat: ours})
}

// Requests are the writes of all clients until now. An empty audit log is an error: nothing would be
// judged.
func (o *Observer) Requests() ([]judge.Request, error) {
	file, err := os.Open(o.log)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	o.mu.Lock()
	from := o.from
	o.mu.Unlock()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	requests, err := judge.ReadAudit(file)
	if err == nil && len(requests) == 0 {
		err = fmt.Errorf("the audit log %s is empty", o.log)
	}
	return requests, err
}

// History is what happened until now. Delay is how late a busy machine may be with what must happen.
func (o *Observer) History(delay time.Duration) (*judge.History, error) {
	return o.HistoryWith(judge.Options{Delay: delay, End: time.Now()})
}

// HistoryWith is History with other options. Nothing else happens until its end.
func (o *Observer) HistoryWith(options judge.Options) (*judge.History, error) {
	requests, err := o.Requests()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return judge.NewHistory(requests, o.cloud, options)
}
