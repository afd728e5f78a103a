package emulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Defaults of Options.
const (
	DefaultAccount = "123456789012"
	DefaultRegion  = "us-east-1"
)

// stopGrace is how long active requests may take after the server stops. Long polls end
// immediately.
const stopGrace = 2 * time.Second

var (
	accountFormat = regexp.MustCompile(`^[0-9]{12}$`)
	regionFormat  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`)
)

// Options is the account and region of a Server, and its timing.
type Options struct {
	// Account is the account id, 12 digits.
	Account string
	// Region is the region's name.
	Region string
	// Timing is the speed of EC2's machines; the zero value is ec2's defaults.
	Timing ec2.Timing
	// AutoScaling is the speed of Auto Scaling groups with a template; the zero value is
	// autoscaling's defaults.
	AutoScaling autoscaling.Timing
	// Unkind, unless zero, lets services answer as badly as AWS documents. EventBridge and SQS deliver
	// late, in any order, in batches of any size, and some messages more than once. EC2 and Auto Scaling
	// describe instances as they were up to three seconds ago, do not know new ones yet, and throttle
	// calls by token buckets. Instance metadata shows notices late, and fails some requests. The value
	// is the seed that repeats a run's choices.
	Unkind uint64
	// Logger receives failures, and at Debug each request. Nil disables logs.
	Logger *slog.Logger
}

// Server is an emulated AWS account in one region.
type Server struct {
	// States are the services' states, for callers in the same process.
	States *States
	// Gate counts calls, denies and throttles them, and makes services fail.
	Gate *wire.Gate

	scope    wire.Scope
	services []wire.Service
	router   *wire.Router
}

// New creates a server that does not listen yet.
func New(o Options) (*Server, error) {
	scope := wire.Scope{Account: o.Account, Region: o.Region, Clock: &wire.Clock{}}
	if scope.Account == "" {
		scope.Account = DefaultAccount
	}
	if scope.Region == "" {
		scope.Region = DefaultRegion
	}
	if !accountFormat.MatchString(scope.Account) {
		return nil, fmt.Errorf("account %q: use 12 digits", scope.Account)
	}
	if !regionFormat.MatchString(scope.Region) {
		return nil, fmt.Errorf("region %q: use a name such as %s", scope.Region, DefaultRegion)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{scope: scope, States: newStates(scope, o)}
	s.services = s.States.services()
	s.Gate = wire.NewGate(s.States.STS.Identify, s.States.CloudTrail.Record)
	s.Gate.Authorize(s.authorize)
	if o.Unkind != 0 {
		s.Gate.LimitRates()
	}
	var err error
	if s.router, err = wire.NewRouter(scope, log, s.Gate, s.services); err != nil {
		return nil, fmt.Errorf("registering services: %w", err)
	}
	return s, nil
}

// Account is the account id of the server.
func (s *Server) Account() string { return s.scope.Account }

// Region is the region of the server.
func (s *Server) Region() string { return s.scope.Region }

// SetClockOffset makes AWS's clock ahead of the machine's, or behind it if negative. It shows in the
// Date of answers, the check of signatures, and the times of events, of instance metadata and of
// credentials. Other times in answers stay those of the machine, and so do durations.
func (s *Server) SetClockOffset(d time.Duration) { s.scope.Clock.SetOffset(d) }

// Handler answers API calls. Background work of the services runs only under Serve, or Work.
func (s *Server) Handler() http.Handler { return s.router }

// Listen opens addr, such as "127.0.0.1:0". It rejects addresses other than loopback, because the
// server does not authenticate callers.
func (s *Server) Listen(addr string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", addr, err)
	}
	if err := loopbackOnly(resolved); err != nil {
		return nil, err
	}
	ln, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", addr, err)
	}
	return ln, nil
}

// Serve answers calls on ln until ctx is done, and returns after every request and all background
// work has ended. Open long polls end with no messages.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if err := loopbackOnly(ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { s.Work(ctx) })
	server := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	return stop(server)
}

// Work runs the services' background work until ctx is done, for callers that use the handler
// without a port.
func (s *Server) Work(ctx context.Context) {
	var background sync.WaitGroup
	for _, service := range s.services {
		if service.Background != nil {
			background.Go(func() { service.Background(ctx) })
		}
	}
	background.Go(func() { s.States.Health.Run(ctx) })
	background.Wait()
}

// stop lets active requests finish within stopGrace.
func stop(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}

func loopbackOnly(addr net.Addr) error {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("refusing to listen on %s: signatures are not checked, so use a loopback address such as 127.0.0.1:0", addr)
}
