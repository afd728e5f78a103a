package imds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options says whose metadata is served.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 has the instances.
	EC2 *ec2.State
	// TargetState tells the Auto Scaling lifecycle state that an instance is on its
	// way to; empty: it belongs to no group. Nil: none does.
	TargetState func(instanceID string) string
}

// Settings are what an owner can set about the metadata service of an instance, and
// ways in which it can fail. The zero value is a service in order.
type Settings struct {
	// Off answers everything 403, as HttpEndpoint=disabled does.
	Off bool
	// Throttled answers everything 503.
	Throttled bool
	// DropTokens never answers a request for a token: what a container sees whose
	// network is one hop further away than HttpPutResponseHopLimit allows.
	DropTokens bool
	// Tags shows the instance's tags, as InstanceMetadataTags=enabled does.
	Tags bool
	// MaxTokenAge ends tokens before their time; zero: they live as long as asked for.
	MaxTokenAge time.Duration
}

// State is the metadata services of all instances. It is safe for concurrent use.
type State struct {
	scope       wire.Scope
	ec2         *ec2.State
	targetState func(instanceID string) string

	mu        sync.Mutex
	settings  map[string]Settings // by instance id
	tokens    map[string]token    // by the token itself
	reads     map[string]int      // by instance id
	endpoints map[*endpoint]struct{}
}

// New makes a state that serves nothing yet.
func New(o Options) *State {
	s := &State{
		scope: o.Scope, ec2: o.EC2, targetState: o.TargetState,
		settings: map[string]Settings{}, tokens: map[string]token{}, reads: map[string]int{}, endpoints: map[*endpoint]struct{}{},
	}
	if s.targetState == nil {
		s.targetState = func(string) string { return "" }
	}
	s.ec2.Subscribe(s.changed)
	return s
}

// Set changes the settings of an instance's service, from the next request on. It may
// be called before Serve.
func (s *State) Set(instanceID string, o Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings[instanceID] = o
}

func (s *State) setting(instanceID string) Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings[instanceID]
}

// Reads returns how often an instance's service was read with a token in order: it
// tells whether somebody on the instance listens.
func (s *State) Reads(instanceID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[instanceID]
}

// Serve opens the metadata service of an instance on a loopback port of its own, and
// returns its base URL, such as http://127.0.0.1:41234, for the SDK's endpoint
// setting. The port answers while the instance is under power; it refuses connections
// when it is not, and answers again when the instance has been started. It ends with
// ctx or stop, which waits until the port is closed.
func (s *State) Serve(ctx context.Context, instanceID string) (url string, stop func(), err error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serving instance metadata of %s: %w", instanceID, err)
	}
	address := listener.Addr().String()
	first := listener
	stop, err = s.ServeOn(ctx, instanceID, func(ctx context.Context) (net.Listener, error) {
		if l := first; l != nil {
			first = nil
			return l, nil
		}
		return lc.Listen(ctx, "tcp", address)
	})
	if err != nil {
		return "", nil, errors.Join(err, listener.Close())
	}
	return "http://" + address, stop, nil
}

// ServeOn is Serve where listen says: an instance that is real has an address of its
// own for it. listen is called whenever the service opens, at once if the instance is
// under power.
func (s *State) ServeOn(ctx context.Context, instanceID string, listen func(context.Context) (net.Listener, error)) (stop func(), err error) {
	if _, ok := s.ec2.Instance(instanceID); !ok {
		return nil, fmt.Errorf("serving instance metadata of %s: there is no such instance", instanceID)
	}
	listener, err := listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("serving instance metadata of %s: %w", instanceID, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &endpoint{
		listen: listen, listener: listener,
		powered: func() bool {
			in, ok := s.ec2.Instance(instanceID)
			return ok && in.Powered
		},
		handler: s.Handler(instanceID), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.mu.Lock()
	s.endpoints[e] = struct{}{}
	s.mu.Unlock()
	go func() {
		e.run(ctx)
		s.mu.Lock()
		delete(s.endpoints, e)
		s.mu.Unlock()
		close(e.done)
	}()
	return func() { cancel(); <-e.done }, nil
}

// changed has every endpoint look again whether its instance is under power.
func (s *State) changed(ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.endpoints {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// zoneID is the id of a zone by its name.
func (s *State) zoneID(zone string) string {
	for _, n := range s.ec2.Subnets() {
		if n.Zone == zone {
			return n.ZoneID
		}
	}
	return ""
}

// lifecycle is how instance metadata names the purchase of an instance.
func lifecycle(in ec2.Instance) string { return cmp.Or(in.Lifecycle(), "on-demand") }
