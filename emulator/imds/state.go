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

// Options is the account of the metadata services, and the services that they read.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 holds the instances.
	EC2 *ec2.State
	// TargetState returns the target lifecycle state of an instance; empty: it belongs to no group.
	// Nil: no instance does.
	TargetState func(instanceID string) string
}

// Settings are the owner's settings of the metadata service of an instance, and failures to
// simulate. The zero value is a working service.
type Settings struct {
	// Off answers all requests with 403, as HttpEndpoint=disabled does.
	Off bool
	// Throttled answers all requests with 503.
	Throttled bool
	// DropTokens never answers a token request, as for a container whose network is one hop further
	// away than HttpPutResponseHopLimit allows.
	DropTokens bool
	// Tags shows the instance's tags, as InstanceMetadataTags=enabled does.
	Tags bool
	// MaxTokenAge limits the lifetime of tokens; zero: the requested lifetime.
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
	unkind    Unkind
	shown     map[string]time.Time // by instance id: from when on its last notice is there
}

// New makes a state that serves nothing yet.
func New(o Options) *State {
	s := &State{
		scope: o.Scope, ec2: o.EC2, targetState: o.TargetState,
		settings: map[string]Settings{}, tokens: map[string]token{}, reads: map[string]int{}, endpoints: map[*endpoint]struct{}{},
		shown: map[string]time.Time{},
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

// Reads returns how often an instance's service was read with a valid token. It shows whether a
// program on the instance polls it.
func (s *State) Reads(instanceID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[instanceID]
}

// Serve opens the metadata service of an instance on a separate loopback port. It returns its base
// URL, such as http://127.0.0.1:41234, for the SDK's endpoint setting. The port answers while the
// instance has power; without power it refuses connections. It ends with ctx or stop, which waits
// until the port is closed.
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

// ServeOn is Serve with a caller's listener: a real instance has its own address for it. listen is
// called whenever the service opens, immediately if the instance has power.
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

// changed makes every endpoint check again whether its instance has power, and delays a new notice.
func (s *State) changed(c ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.What == ec2.Warned || c.What == ec2.Recommended {
		s.shown[c.Instance.ID] = time.Now().Add(s.unkind.lag())
	}
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

// lifecycle is the purchase option in instance metadata.
func lifecycle(in ec2.Instance) string { return cmp.Or(in.Lifecycle(), "on-demand") }
