package view

import "github.com/lifeboat-dev/lifeboat/api/v1beta1"

// Plan is what would happen to the pods of a node.
type Plan struct {
	Title string `json:"title"`
	Facts []Fact `json:"facts"`
	// Verdict says whether every pod leaves in time; Fixes say what to change if not.
	Verdict string   `json:"verdict"`
	Tone    Tone     `json:"tone,omitempty"`
	Fixes   []string `json:"fixes"`
	// Command is the command that prints the same plan.
	Command        string `json:"command"`
	Lanes          []Lane `json:"lanes"`
	From           Millis `json:"from"`
	To             Millis `json:"to"`
	Deadline       Millis `json:"deadline,omitempty"`
	DeadlineType   string `json:"deadlineType,omitempty"`
	DeadlineOnAxis bool   `json:"deadlineOnAxis,omitempty"`
}

// Fit sets the end of the axis and the deadline.
func (p *Plan) Fit(deadline *v1beta1.Deadline) {
	end := p.From
	for _, l := range p.Lanes {
		for _, s := range l.Segments {
			end = max(end, s.From, s.To)
		}
	}
	if deadline != nil {
		p.Deadline, p.DeadlineType = At(deadline.Time.Time), string(deadline.Type)
		if p.Deadline <= end+Millis(offAxis.Milliseconds()) {
			p.DeadlineOnAxis, end = true, max(end, p.Deadline)
		}
	}
	p.To = max(end, p.From+1000)
	trimMarks(p.Lanes, p.To)
}
