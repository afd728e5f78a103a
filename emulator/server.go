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

// What Options default to.
const (
	DefaultAccount = "123456789012"
	DefaultRegion  = "us-east-1"
)

// stopGrace is how long requests under way may take once the server stops.
// Long polls end by themselves at once.
const stopGrace = 2 * time.Second

var (
	accountFormat = regexp.MustCompile(`^[0-9]{12}$`)
	regionFormat  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$`)
)

// Options says what a Server plays.
type Options struct {
	// Account is the account id, 12 digits.
	Account string
	// Region is the region's name.
	Region string
	// Timing is how fast EC2's machines are; the zero value is ec2's defaults.
	Timing ec2.Timing
	// AutoScaling is how fast living Auto Scaling groups are; the zero value is
	// autoscaling's defaults.
	AutoScaling autoscaling.Timing
	// Logger hears of failures, and at Debug of each request. Nil is silence.
	Logger *slog.Logger
}

// Server is an emulated AWS account in one region.
type Server struct {
	// States are the services' states, for those who share the process.
	States *States
	// Gate counts calls, denies and throttles them, and lets services fail.
	Gate *wire.Gate

	scope    wire.Scope
	services []wire.Service
	router   *wire.Router
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	scope := wire.Scope{Account: o.Account, Region: o.Region}
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
	var err error
	if s.router, err = wire.NewRouter(scope, log, s.Gate, s.services); err != nil {
		return nil, fmt.Errorf("registering services: %w", err)
	}
	return s, nil
}

// Account is the account id that the server plays.
func (s *Server) Account() string { return s.scope.Account }

// Region is the region that the server plays.
func (s *Server) Region() string { return s.scope.Region }

// Handler answers API calls. What services do by themselves is done only under
// Serve, or Work.
func (s *Server) Handler() http.Handler { return s.router }

// Listen opens addr, such as "127.0.0.1:0". It refuses addresses that are not
// loopback: whoever reaches the server is let in.
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

// Serve answers calls on ln until ctx is done, and returns once every request
// and all background work has ended. Open long polls end with no messages.
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

// Work does what the services do by themselves until ctx is done, for those who
// call the handler without a port.
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

// stop lets requests under way finish, but not for long.
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
