package bootagent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// journalFile is the name of the journal in the state directory.
const journalFile = "journal.json"

// Journal is the state that must survive a crash, a reboot or a stop. It is written before an
// action.
type Journal struct {
	// Instance is the machine that it is about. An image of a used machine has the journal of
	// that machine, which is ignored.
	Instance string `json:"instance"`
	// Lives counts how often this disk has been in service, or on its way there.
	Lives int `json:"lives"`
	// Stages are when stages of preparation were completed, by key.
	Stages map[string]time.Time `json:"stages,omitempty"`
	// Served is set if the gate was opened in this life.
	Served bool `json:"served,omitempty"`
	// Node is the name of this life's node, once it was seen.
	Node string `json:"node,omitempty"`
	// NodeGone is set if that node was seen to be gone.
	NodeGone bool `json:"nodeGone,omitempty"`
	// Pooled is set if the machine was sent to the warm pool since it served.
	Pooled bool `json:"pooled,omitempty"`
	// Wiping is when an unfinished wipe began; zero: none.
	Wiping time.Time `json:"wiping,omitzero"`
	// Gate is how it was last opened.
	Gate GateRecord `json:"gate"`
	// Leg is the transition that the machine is in.
	Leg Leg `json:"leg"`
}

// GateRecord is when the gate was opened.
type GateRecord struct {
	// Boot is the boot in which it was opened; the gate is open in no other.
	Boot string    `json:"boot,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Started is set if the start command has succeeded since.
	Started bool `json:"started,omitempty"`
}

// Leg is a transition from one permanent state to another. A reboot or another target restarts
// it; a suspension does not.
type Leg struct {
	Boot string    `json:"boot,omitempty"`
	Goal Goal      `json:"goal,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Answered is its result: why no hook holds the machine any more.
	Answered string `json:"answered,omitempty"`
	// Beat is when its hooks last got a heartbeat.
	Beat time.Time `json:"beat,omitzero"`
}

// Goal is the target of a leg.
type Goal string

// The goals.
const (
	// Serve: into service.
	Serve Goal = "Serve"
	// Alone: into service, without a group.
	Alone Goal = "Alone"
	// Warm: into the warm pool.
	Warm Goal = "Warm"
	// Return: into the warm pool, out of service.
	Return Goal = "Return"
	// End: terminated.
	End Goal = "End"
	// Aside: to standby.
	Aside Goal = "Aside"
)

// phases are the phase of the transition to each goal, and the phase at its end.
func (g Goal) phases() (way, end lifecycle.Phase) {
	switch g {
	case Serve:
		return lifecycle.Joining, lifecycle.Serving
	case Warm, Return:
		return lifecycle.Warming, lifecycle.Warm
	}
	return lifecycle.Unknown, lifecycle.Unknown
}

// readJournal parses the journal of an instance. It starts a new one for another instance, and,
// with an error, for an invalid journal.
func readJournal(data []byte, instance string) (Journal, error) {
	fresh := Journal{Instance: instance, Lives: 1}
	if len(data) == 0 {
		return fresh, nil
	}
	var j Journal
	if err := json.Unmarshal(data, &j); err != nil {
		return fresh, fmt.Errorf("reading the journal: %w: starting a new one", err)
	}
	if j.Instance != instance {
		return fresh, nil
	}
	return j, nil
}

// reborn is the journal of the next life. Pulled images stay; commands run again, because the
// wipe may have removed what they set up.
func (j Journal) reborn() Journal {
	next := Journal{Instance: j.Instance, Lives: j.Lives + 1, NodeGone: j.NodeGone, Leg: j.Leg, Stages: map[string]time.Time{}}
	for key, at := range j.Stages {
		if strings.HasPrefix(key, imageKey) {
			next.Stages[key] = at
		}
	}
	return next
}

// imageKey and commandKey are the prefixes of the keys of stages.
const (
	imageKey   = "image "
	commandKey = "command "
)
