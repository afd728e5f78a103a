package bootagent

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Options are the settings of an Agent and all its external dependencies, so that many agents
// can run in one process with simulated time.
type Options struct {
	Settings

	// Metadata makes a client of instance metadata. It is called again after a suspension,
	// because cached values may be obsolete.
	Metadata func() Metadata
	// Connect connects to Auto Scaling when first needed, and again after a suspension.
	Connect func(ctx context.Context) (AutoScaling, error)
	// Node reads the machine's node. Known is its last known name; empty: unknown.
	Node func(ctx context.Context, instance, known string) Node
	// Run runs a command, and returns the end of its output.
	Run func(ctx context.Context, command []string) (string, error)
	// Remove removes a file or a directory with its contents.
	Remove func(path string) error
	// State keeps the journal and the status; Gate keeps the file that opens the gate.
	State, Gate Files
	// BootID returns an id that differs between boots.
	BootID func() (string, error)
	// Used returns how many bytes are in use where images are stored; nil: unknown, so that
	// only completed stages count as progress.
	Used func() (uint64, error)
	// Sync flushes all writes to disk; nil: not needed.
	Sync func()
	// Clock returns the time; the zero value is the machine's clock.
	Clock Clock
	// Dice varies pauses: a number in [0, 1). Nil: math/rand.
	Dice func() float64
}

// Metadata reads the value at a path, and reports false if there is none; metadata.Client
// implements it.
type Metadata interface {
	Get(ctx context.Context, path string) (text string, found bool, err error)
}

// AutoScaling are the calls to Auto Scaling. Their errors are classified by cloud.IsNoAction,
// IsDenied and IsBusy.
type AutoScaling struct {
	// Describe reads the state of an instance; a State without a group means that it is in
	// none.
	Describe func(ctx context.Context, instance string) (State, error)
	// Hooks lists the hooks of a group.
	Hooks func(ctx context.Context, group string) ([]lifecycle.Hook, error)
	// Complete and Heartbeat are those of cloud.Lifecycle.
	Complete  func(ctx context.Context, a cloud.Action, r cloud.Result) error
	Heartbeat func(ctx context.Context, a cloud.Action) error
}

// Files keeps small files by name. Write is atomic, and durable when it returns.
type Files interface {
	// Read returns nothing and no error for a missing file.
	Read(name string) ([]byte, error)
	Write(name string, data []byte) error
	Remove(name string) error
}

// Clock returns the wall time, and a monotonic time that does not advance while the machine is
// suspended.
type Clock struct {
	Wall      func() time.Time
	Monotonic func() time.Duration
}

// Settings are the settings of an Agent. Zero values are the defaults.
type Settings struct {
	// Interval is how often metadata is read; 7 s.
	Interval time.Duration
	// AbsentFor is how long metadata may have no target before other sources are used; 2 min.
	AbsentFor time.Duration
	// Images are pulled while the machine warms.
	Images []string
	// Pull is the command that pulls an image; REF is replaced by its name.
	Pull []string
	// Parallel is how many images are pulled at the same time; 2.
	Parallel int
	// Prepare are commands that must succeed before the machine serves or is warm. They run in
	// this order, once per life, and again if they were interrupted.
	Prepare []string
	// Start and Stop start and stop the kubelet; Active succeeds while it runs.
	Start, Stop, Active string
	// Wipe is a command, and WipePaths are files, that remove the state of one life in service
	// before the machine returns to the warm pool.
	Wipe      string
	WipePaths []string
	// Hooks are the names of hooks to complete, with * for any text; lifeboat-*.
	Hooks []string
	// NoAnswer leaves all hooks to the controller.
	NoAnswer bool
	// Abandon abandons a launch whose preparation has failed Tries times; 5.
	Abandon bool
	Tries   int
	// Patience bounds the heartbeats of one leg, 30 min; Stall bounds the time without
	// progress, 10 min.
	Patience, Stall time.Duration
}

// Default commands.
const (
	DefaultStart  = "systemctl start kubelet.service"
	DefaultStop   = "systemctl stop kubelet.service lifeboat-gate.service"
	DefaultActive = "systemctl is-active --quiet kubelet.service"
	DefaultPull   = "ctr -n k8s.io images pull " + refWord
	refWord       = "REF"
)

func (s Settings) withDefaults() Settings {
	text := func(p *string, otherwise string) {
		if *p == "" {
			*p = otherwise
		}
	}
	span := func(p *time.Duration, otherwise time.Duration) {
		if *p <= 0 {
			*p = otherwise
		}
	}
	count := func(p *int, otherwise int) {
		if *p <= 0 {
			*p = otherwise
		}
	}
	text(&s.Start, DefaultStart)
	text(&s.Stop, DefaultStop)
	text(&s.Active, DefaultActive)
	span(&s.Interval, 7*time.Second)
	span(&s.AbsentFor, 2*time.Minute)
	span(&s.Patience, 30*time.Minute)
	span(&s.Stall, 10*time.Minute)
	count(&s.Parallel, 2)
	count(&s.Tries, 5)
	if len(s.Pull) == 0 {
		s.Pull = words(DefaultPull)
	}
	if len(s.Hooks) == 0 {
		s.Hooks = []string{"lifeboat-*"}
	}
	return s
}

func (o Options) withDefaults() Options {
	o.Settings = o.Settings.withDefaults()
	if o.Clock.Wall == nil {
		o.Clock.Wall = func() time.Time { return time.Now().Round(0) }
	}
	if o.Clock.Monotonic == nil {
		began := time.Now()
		o.Clock.Monotonic = func() time.Duration { return time.Since(began) }
	}
	if o.Dice == nil {
		o.Dice = rand.Float64
	}
	if o.Sync == nil {
		o.Sync = func() {}
	}
	return o
}

// rules are the settings for decisions.
func (s Settings) rules() Rules {
	return Rules{
		AbsentFor: s.AbsentFor, Answer: !s.NoAnswer, Abandon: s.Abandon, Patience: s.Patience, Stall: s.Stall,
		Tries: s.Tries, Parallel: s.Parallel,
	}
}

// stages are the stages of preparation, commands first: image pulls may depend on them.
func (s Settings) stages(done map[string]time.Time) []StageFact {
	var out []StageFact
	add := func(key string, isImage bool) {
		_, isDone := done[key]
		out = append(out, StageFact{Key: key, Image: isImage, Done: isDone})
	}
	for _, command := range s.Prepare {
		add(commandKey+command, false)
	}
	for _, image := range s.Images {
		add(imageKey+image, true)
	}
	return out
}
