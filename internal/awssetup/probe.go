package awssetup

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// ProbeField is the field of a probe's detail that holds its [ProbeMark].
const ProbeField = "lifeboat-probe"

// ProbeMark identifies a probe. A message with this mark is never a notice.
type ProbeMark struct {
	// ID identifies the probe.
	ID string `json:"id"`
	// Cluster is the cluster whose wiring the probe tests. In an account with several
	// clusters, each cluster receives all probes.
	Cluster string `json:"cluster"`
	// Rule is the role of the tested rule.
	Rule string `json:"rule"`
}

// ProbeEvent is the PutEvents entry for the default bus.
type ProbeEvent struct {
	Source     string          `json:"source"`
	DetailType string          `json:"detailType"`
	Detail     json.RawMessage `json:"detail"`
}

// Probe returns an event that the rule matches like an AWS event: it has the rule's
// detail-type and the fields of its filter. The error means that this release does
// not know the rule's role.
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
	return ProbeEvent{}, fmt.Errorf("rule %s: this version has no probe for the role %q", rule.Name, rule.Role)
}
