package imds_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	awsimds "github.com/lifeboat-dev/lifeboat/emulator/imds"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake/imds"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// machine is a spot instance that is a node, with the source of its agent.
type machine struct {
	*polltest.World
	t   *testing.T
	emu *emulator.Server
	id  string
	url string // of its metadata
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	t.Parallel()
	server, _ := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{World: polltest.New(t), t: t, emu: server, id: made[0].ID}
	m.Until("the machine runs", func() bool {
		in, _ := server.States.EC2.Instance(m.id)
		return in.Powered
	})
	url, stop, err := server.States.IMDS.Serve(t.Context(), m.id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	m.url = url
	m.AddNode(m.id)
	return m
}

// endpoint is the metadata endpoint in the SDK's configuration.
type endpoint string

// GetEC2IMDSEndpoint returns it.
func (e endpoint) GetEC2IMDSEndpoint() (string, bool, error) { return string(e), true, nil }

// client is the product's client for this machine.
func client(url string) *metadata.Client {
	return metadata.NewClient(aws.Config{ConfigSources: []any{endpoint(url)}})
}

// start runs the source until the test ends or it is stopped.
func (m *machine) start() (source *imds.Source, stop func()) {
	m.t.Helper()
	return m.run(client(m.url), m.id)
}

func (m *machine) run(metadata imds.Metadata, node string) (source *imds.Source, stop func()) {
	m.t.Helper()
	source = imds.New(metadata, imds.Options{
		Interval: 5 * time.Millisecond, Kube: m.AgentClient(), Metrics: m.Metrics,
		Identify: func(ctx context.Context) (imds.Identity, error) {
			n, err := m.NodeByInstance(ctx, node)
			if err != nil {
				return imds.Identity{}, err
			}
			return imds.Identity{Node: n.Name, UID: string(n.UID), InstanceID: node}, nil
		},
	})
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), m.Logger()))
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			m.t.Errorf("Run: %v", err)
		}
	})
	m.t.Cleanup(stop)
	return source, stop
}

func (m *machine) untilReady(s *imds.Source) {
	m.t.Helper()
	m.Until("the source is ready", func() bool { return s.Ready() == nil })
}

func (m *machine) set(s awsimds.Settings) { m.emu.States.IMDS.Set(m.id, s) }

// untilWritten waits until the NodeNotice has that many notices.
func (m *machine) untilWritten(count int) {
	m.t.Helper()
	m.Until("notices are written", func() bool { return len(m.Written(m.id)) == count })
}

// looks waits until the metadata was read a few more times.
func (m *machine) looks(reads *counted, times int) {
	m.t.Helper()
	from := reads.count()
	m.Until("metadata was read again", func() bool { return reads.count() >= from+times })
}

// counted counts reads of metadata.
type counted struct {
	imds.Metadata
	mu sync.Mutex
	n  int
}

func (c *counted) Get(ctx context.Context, path string) (string, bool, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Metadata.Get(ctx, path)
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
