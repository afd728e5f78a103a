package cli

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/forecast"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// planned is what `plan` tells.
type planned struct {
	Node       string `json:"node"`
	InstanceID string `json:"instanceID,omitempty"`
	// Supposed is true where the node has no interruption and one was made up.
	Supposed      bool               `json:"supposed"`
	Kind          string             `json:"kind,omitempty"`
	EventTypeCode string             `json:"eventTypeCode,omitempty"`
	Decision      v1alpha1.Decision  `json:"decision"`
	Deadline      *v1alpha1.Deadline `json:"deadline,omitempty"`
	// ownDeadline is set where Lifeboat terminates the instance then, and the
	// cloud does not.
	ownDeadline bool
	// Begins is when the drain begins, if policy makes it wait.
	Begins *time.Time `json:"begins,omitempty"`
	// AwaitsApproval is true where a person has to agree first, and has not;
	// Approval says how it stands with that.
	AwaitsApproval bool   `json:"awaitsApproval,omitempty"`
	Approval       string `json:"approval,omitempty"`
	// Waits is what all pods wait for: a turn, a person's hold, hooks.
	Waits []string `json:"waits,omitempty"`
	// Fits is true where every pod leaves with its whole grace period before
	// the deadline.
	Fits bool         `json:"fits"`
	Pods []plannedPod `json:"pods"`
	// Mend says, where it does not fit, what would make it.
	Mend []string `json:"mend,omitempty"`
}

// plannedPod is what becomes of a pod. Times are relative to now.
type plannedPod struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Step      drain.Step `json:"step"`
	Reason    string     `json:"reason"`
	// Now is the planner's sentence at the beginning, if it differs.
	Now                string   `json:"now,omitempty"`
	AskedInSeconds     *float64 `json:"askedInSeconds,omitempty"`
	GoneInSeconds      *float64 `json:"goneInSeconds,omitempty"`
	LastCallInSeconds  *float64 `json:"lastCallInSeconds,omitempty"`
	GraceSeconds       float64  `json:"graceSeconds"`
	WantedGraceSeconds float64  `json:"wantedGraceSeconds"`
	Overrides          string   `json:"overrides,omitempty"`
	Fits               bool     `json:"fits"`
	// Mend says, where it does not fit, what would make it.
	Mend string `json:"mend,omitempty"`
}

func (p *planned) add(f forecast.PodOutcome, now time.Time) {
	pod := plannedPod{
		Namespace: f.Pod.Namespace, Name: f.Pod.Name, Step: f.Step, Reason: f.Reason,
		AskedInSeconds:     in(f.Asked, now),
		GoneInSeconds:      in(f.Gone, now),
		LastCallInSeconds:  in(f.LastCall, now),
		GraceSeconds:       f.Grace.Seconds(),
		WantedGraceSeconds: f.Wants.Seconds(),
		Overrides:          f.Overrides,
		Fits:               f.Fits,
	}
	if f.Now.Reason != f.Reason {
		pod.Now = f.Now.Reason
	}
	p.Pods = append(p.Pods, pod)
	p.Fits = p.Fits && f.Fits
}

// in is a moment in seconds from now; nil if there is none.
func in(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Sub(now).Round(time.Millisecond).Seconds()
	return &seconds
}

// advise says of each pod that would not make it what would have it do so.
func (p *planned) advise(d policy.Decision, begins time.Time) {
	for i := range p.Pods {
		if pod := &p.Pods[i]; !pod.Fits {
			pod.Mend = pod.mend(d, begins)
		}
	}
}

func (p *plannedPod) mend(d policy.Decision, begins time.Time) string {
	switch {
	case d.InstanceGone:
		return "the instance no longer runs: there is no time left to give"
	case isHard(d.Deadline) && !d.Deadline.Time.After(begins):
		return "the deadline has come already: there is no time left to give"
	case p.GoneInSeconds != nil && p.GraceSeconds < p.WantedGraceSeconds:
		return fmt.Sprintf("it may take %s to stop and gets %s: lower its terminationGracePeriodSeconds to that, or keep it off such nodes",
			terminal.Duration(seconds(p.WantedGraceSeconds)), terminal.Duration(seconds(p.GraceSeconds)))
	case p.GoneInSeconds != nil:
		return "it leaves, but after the deadline: begin earlier (notBefore), or lower the grace of the pods that leave before it"
	case p.Step == drain.StepStays:
		return "policy leaves it where it is: change the strategy Never of its workload if it should leave"
	case d.DoNotDisrupt == v1alpha1.DoNotDisruptRespect:
		return "it never gets to leave: remove what holds it, or have policy say doNotDisrupt: UntilLastCall"
	}
	return "it never gets to leave as things are: remove what it waits for"
}
