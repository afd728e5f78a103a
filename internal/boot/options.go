package boot

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Options are what an Agent is made of: its settings, and every way in which it touches
// the world, so that many can live in one process and in a time of their own.
type Options struct {
	Settings

	// Metadata makes a client of instance metadata. It is called anew after the
	// machine was suspended: what was known then may be of another time.
	Metadata func() Metadata
	// Connect makes a connection to Auto Scaling, when it is first needed, and anew
	// after the machine was suspended.
	Connect func(ctx context.Context) (AutoScaling, error)
	// Node reads the machine's node. Known is the name under which it was last seen;
	// empty: not yet.
	Node func(ctx context.Context, instance, known string) Node
	// Run runs a command to its end, and returns the end of what it wrote.
	Run func(ctx context.Context, command []string) (string, error)
	// Remove removes a file or a directory with all that is in it.
	Remove func(path string) error
	// State keeps the journal and the status; Gate, the file that opens the gate.
	State, Gate Files
	// BootID tells one boot from another.
	BootID func() (string, error)
	// Used is how many bytes are in use where images are kept; nil: not known, so
	// that only what is finished counts as progress.
	Used func() (uint64, error)
	// Sync has the disk take all that was written; nil: it does by itself.
	Sync func()
	// Clock tells the time; the zero value is the machine's.
	Clock Clock
	// Dice vary pauses: a number in [0, 1). Nil: math/rand.
	Dice func() float64
}

// Metadata reads what stands at a path, and reports false where there is nothing:
// metadata.Client does.
type Metadata interface {
	Get(ctx context.Context, path string) (text string, found bool, err error)
}

// AutoScaling are the calls that are made. Their errors are told apart by
// cloud.IsNoAction, IsDenied and IsBusy.
type AutoScaling struct {
	// Describe asks for the state of an instance; a State without a group: it is in
	// none.
	Describe func(ctx context.Context, instance string) (State, error)
	// Hooks lists the hooks of a group.
	Hooks func(ctx context.Context, group string) ([]lifecycle.Hook, error)
	// Complete and Heartbeat are cloud.Lifecycle's.
	Complete  func(ctx context.Context, a cloud.Action, r cloud.Result) error
	Heartbeat func(ctx context.Context, a cloud.Action) error
}

// Files keeps small files by name. Write is whole or not at all, and on disk when it
// returns.
type Files interface {
	// Read returns nothing and no error where there is no such file.
	Read(name string) ([]byte, error)
	Write(name string, data []byte) error
	Remove(name string) error
}

// Clock tells the time of day, and the time since some moment, which stands still while
// the machine is suspended.
type Clock struct {
	Wall      func() time.Time
	Monotonic func() time.Duration
}

// Settings are what an Agent can be told. Zero values are the defaults.
type Settings struct {
	// Interval is how often metadata is read; 7 s.
	Interval time.Duration
	// AbsentFor is for how long metadata may say nothing before others are asked; 2 min.
	AbsentFor time.Duration
	// Images are pulled while the machine warms.
	Images []string
	// Pull is the command that pulls an image, whose name stands for REF.
	Pull []string
	// Parallel is how many images are pulled at once; 2.
	Parallel int
	// Prepare are commands that have to succeed before the machine serves or is warm.
	// They are run in this order, once in a life, and again where they were cut short.
	Prepare []string
	// Start and Stop start and stop the kubelet; Active succeeds while it runs.
	Start, Stop, Active string
	// Wipe is a command, and WipePaths are files, that belong to one life in service
	// and go before the machine returns to the warm pool.
	Wipe      string
	WipePaths []string
	// Hooks are the names of hooks to answer, with * for any text; lifeboat-*.
	Hooks []string
	// NoAnswer leaves all hooks to the controller.
	NoAnswer bool
	// Abandon abandons a launch whose preparation has failed Tries times; 5.
	Abandon bool
	Tries   int
	// Patience bounds heartbeats on one way in all, 30 min; Stall, without progress,
	// 10 min.
	Patience, Stall time.Duration
}

// Defaults of commands.
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

// rules are the settings that decisions go by.
func (s Settings) rules() Rules {
	return Rules{
		AbsentFor: s.AbsentFor, Answer: !s.NoAnswer, Abandon: s.Abandon, Patience: s.Patience, Stall: s.Stall,
		Tries: s.Tries, Parallel: s.Parallel,
	}
}

// stages are the stages of preparation, commands first: they may set up what pulls.
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
