package boottest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// process is one run of the agent's process.
type process struct {
	m      *Machine
	dead   bool // guarded by the machine's lock
	cancel context.CancelFunc
}

var errKilled = errors.New("the agent was killed")

// begin starts the agent, and restarts it when it dies. The caller holds the lock.
func (m *Machine) begin() {
	if m.host.NoAgent {
		return
	}
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), m.host.Logger.WithValues("machine", m.ID)))
	l := &process{m: m, cancel: cancel}
	m.process = l
	m.ended.Go(func() {
		defer cancel()
		if sleep.For(ctx, m.host.BootFor) {
			_ = bootagent.New(l.options()).Run(ctx) // it returns nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.on && (m.process == nil || m.process == l) {
			m.begin()
		}
	})
}

// do executes an effect if the process lives and the machine is awake.
func (l *process) do(effect func() error) error {
	m := l.m
	m.mu.Lock()
	m.count++
	if m.count == m.suspendAt {
		m.suspend()
	}
	die := m.count == m.dieAt
	for m.asleep != nil {
		asleep := m.asleep
		m.mu.Unlock()
		<-asleep
		m.mu.Lock()
	}
	if l.dead {
		m.mu.Unlock()
		return errKilled
	}
	if die {
		m.kill()
		m.mu.Unlock()
		return errKilled
	}
	m.mu.Unlock()
	err := effect()
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.dead {
		return errKilled
	}
	return err
}

// options are the options of the machine's agent.
func (l *process) options() bootagent.Options {
	m := l.m
	return bootagent.Options{
		Settings: m.host.Settings,
		Metadata: func() bootagent.Metadata {
			return metadata.NewClientOver(aws.Config{ConfigSources: []any{fakeEndpoint("http://169.254.169.254")}}, emulatortest.Direct{Handler: http.HandlerFunc(m.serveMetadata), Pass: l.reach(func(c Cuts) bool { return c.Metadata })})
		},
		Connect: func(context.Context) (bootagent.AutoScaling, error) {
			return bootagent.NewAutoScaling(emulatortest.ConfigOver(m.region.Server, emulatortest.Direct{Handler: m.region.Handler(), Pass: l.reach(func(c Cuts) bool { return c.AWS })})), nil
		},
		Node:   l.readNode,
		Run:    l.run,
		Remove: func(path string) error { return l.do(func() error { m.Note("remove " + path); return nil }) },
		State:  files{l, m.memory(func() *Memory { return m.disk })}, Gate: files{l, m.memory(func() *Memory { return m.gate })},
		BootID: func() (string, error) {
			in, ok := m.region.States.EC2.Instance(m.ID)
			if !ok {
				return "", errors.New("there is no such instance")
			}
			return in.BootID, nil
		},
		Clock: bootagent.Clock{Wall: func() time.Time { return time.Now().Round(0) }, Monotonic: m.monotonic()},
		Dice:  m.host.Dice,
	}
}

// memory returns the current Memory.
func (m *Machine) memory(of func() *Memory) func() *Memory {
	return func() *Memory {
		m.mu.Lock()
		defer m.mu.Unlock()
		return of()
	}
}

func (m *Machine) monotonic() func() time.Duration {
	began := time.Now()
	return func() time.Duration {
		m.mu.Lock()
		defer m.mu.Unlock()
		return time.Since(began) - m.slept
	}
}

// serveMetadata serves the instance's metadata.
func (m *Machine) serveMetadata(w http.ResponseWriter, r *http.Request) {
	m.region.States.IMDS.Handler(m.ID).ServeHTTP(w, r)
}

// reach fails if the connection is cut.
func (l *process) reach(cut func(Cuts) bool) func(func() error) error {
	return func(effect func() error) error {
		return l.do(func() error {
			l.m.mu.Lock()
			isCut := cut(l.m.cuts)
			l.m.mu.Unlock()
			if isCut {
				return errors.New("network is unreachable")
			}
			return effect()
		})
	}
}

// fakeEndpoint is the metadata endpoint in the configuration of an SDK.
type fakeEndpoint string

// GetEC2IMDSEndpoint returns the endpoint.
func (n fakeEndpoint) GetEC2IMDSEndpoint() (string, bool, error) { return string(n), true, nil }

// files are the files as the agent accesses them.
type files struct {
	*process
	of func() *Memory
}

func (f files) Read(name string) (data []byte, err error) {
	err = f.do(func() error { data, err = f.of().Read(name); return err })
	return data, err
}

func (f files) Write(name string, data []byte) error {
	return f.do(func() error { return f.of().Write(name, data) })
}

func (f files) Remove(name string) error {
	return f.do(func() error { return f.of().Remove(name) })
}

// run simulates the default commands.
func (l *process) run(ctx context.Context, command []string) (string, error) {
	line := strings.Join(command, " ")
	line = strings.TrimPrefix(line, "/bin/sh -c ")
	m := l.m
	var err error
	failed := l.do(func() error {
		switch line {
		case bootagent.DefaultStart:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.startKubelet()
		case bootagent.DefaultStop:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.stopKubelet()
		case bootagent.DefaultActive:
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.kubelet.runs {
				err = errors.New("exit status 3")
			}
		default:
			m.Note("run " + line)
			if m.host.Fails != "" && strings.Contains(line, m.host.Fails) {
				err = fmt.Errorf("%s: exit status 1", line)
			}
		}
		return nil
	})
	if failed != nil || err != nil || m.host.RunFor == 0 || strings.HasPrefix(line, "systemctl ") {
		return "", errors.Join(failed, err)
	}
	if !sleep.For(ctx, m.host.RunFor) {
		return "", ctx.Err()
	}
	return "", l.do(func() error { m.Note("ran " + line); return nil })
}
