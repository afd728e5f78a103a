package boot

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// journalFile is the name of the journal in the state directory.
const journalFile = "journal.json"

// Journal is what has to be known after a crash, a reboot or a stop. It is written
// before what it speaks of is done.
type Journal struct {
	// Instance is the machine that it is about. An image that was made of a used
	// machine carries the journal of another, which is not believed.
	Instance string `json:"instance"`
	// Lives counts how often this disk has been in service, or was on its way there.
	Lives int `json:"lives"`
	// Stages are when stages of preparation were done, by their keys.
	Stages map[string]time.Time `json:"stages,omitempty"`
	// Served tells whether the gate was opened in this life.
	Served bool `json:"served,omitempty"`
	// Node is the name of this life's node, once it was seen.
	Node string `json:"node,omitempty"`
	// NodeGone tells whether that node was seen to be gone since.
	NodeGone bool `json:"nodeGone,omitempty"`
	// Pooled tells whether the machine was sent to the warm pool since it served.
	Pooled bool `json:"pooled,omitempty"`
	// Wiping is when wiping began that has not ended; zero: none has.
	Wiping time.Time `json:"wiping,omitzero"`
	// Gate is how it was last opened.
	Gate GateRecord `json:"gate"`
	// Leg is the way that the machine is on.
	Leg Leg `json:"leg"`
}

// GateRecord is how the gate was opened.
type GateRecord struct {
	// Boot is the boot in which it was; a gate is open in no other.
	Boot string    `json:"boot,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Started tells whether the start command has succeeded since.
	Started bool `json:"started,omitempty"`
}

// Leg is one way from a lasting state to another. A reboot begins it anew, and so does
// another target; being suspended does not.
type Leg struct {
	Boot string    `json:"boot,omitempty"`
	Goal Goal      `json:"goal,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Answered says what came of it: why nothing is held any more.
	Answered string `json:"answered,omitempty"`
	// Beat is when its hooks last got a heartbeat.
	Beat time.Time `json:"beat,omitzero"`
}

// Goal is where the machine is to go.
type Goal string

// The goals.
const (
	// Serve: into service.
	Serve Goal = "Serve"
	// Alone: into service, as the member of no group.
	Alone Goal = "Alone"
	// Warm: into the warm pool.
	Warm Goal = "Warm"
	// Return: into the warm pool, out of service.
	Return Goal = "Return"
	// End: away.
	End Goal = "End"
	// Aside: to standby.
	Aside Goal = "Aside"
)

// phases are the phase of each goal's way, and the one that lies at its end.
func (g Goal) phases() (way, end lifecycle.Phase) {
	switch g {
	case Serve:
		return lifecycle.Joining, lifecycle.Serving
	case Warm, Return:
		return lifecycle.Warming, lifecycle.Warm
	}
	return lifecycle.Unknown, lifecycle.Unknown
}

// readJournal reads a journal of an instance. One of another instance begins anew, and
// so does one that cannot be read, with an error that says so.
func readJournal(data []byte, instance string) (Journal, error) {
	fresh := Journal{Instance: instance, Lives: 1}
	if len(data) == 0 {
		return fresh, nil
	}
	var j Journal
	if err := json.Unmarshal(data, &j); err != nil {
		return fresh, fmt.Errorf("reading the journal: %w: begins a new one", err)
	}
	if j.Instance != instance {
		return fresh, nil
	}
	return j, nil
}

// reborn is the journal of the next life. Images that were pulled stay; commands are
// run again, since what they set up may have been wiped.
func (j Journal) reborn() Journal {
	next := Journal{Instance: j.Instance, Lives: j.Lives + 1, NodeGone: j.NodeGone, Leg: j.Leg, Stages: map[string]time.Time{}}
	for key, at := range j.Stages {
		if strings.HasPrefix(key, imageKey) {
			next.Stages[key] = at
		}
	}
	return next
}

// imageKey and commandKey begin the keys of stages.
const (
	imageKey   = "image "
	commandKey = "command "
)
