package wiring

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// ProbeField is the field of a probe's detail that holds its [ProbeMark].
const ProbeField = "lifeboat-probe"

// ProbeMark identifies a probe. A message that carries it is never a notice.
type ProbeMark struct {
	// ID tells one probe from another.
	ID string `json:"id"`
	// Cluster is whose wiring is tried. In an account with several clusters each
	// gets the probes of all.
	Cluster string `json:"cluster"`
	// Rule is the role of the rule that is tried.
	Rule string `json:"rule"`
}

// ProbeEvent is what to put on the default bus, with PutEvents.
type ProbeEvent struct {
	Source     string          `json:"source"`
	DetailType string          `json:"detailType"`
	Detail     json.RawMessage `json:"detail"`
}

// Probe is an event that takes the very way through a rule that AWS's own would:
// it has the rule's detail-type and the fields that the rule filters on. The error
// says that the rule has no role that this release knows.
func Probe(rule Rule, id, cluster string) (ProbeEvent, error) {
	for _, r := range roles() {
		if r.Role != rule.Role {
			continue
		}
		detail := map[string]any{ProbeField: ProbeMark{ID: id, Cluster: cluster, Rule: r.Role}}
		maps.Copy(detail, r.detail)
		text, err := json.Marshal(detail)
		if err != nil {
			return ProbeEvent{}, fmt.Errorf("encoding the probe: %w", err)
		}
		return ProbeEvent{Source: notice.ProbeSource, DetailType: r.detailType, Detail: text}, nil
	}
	return ProbeEvent{}, fmt.Errorf("rule %s: there is no probe for the role %q", rule.Name, rule.Role)
}
