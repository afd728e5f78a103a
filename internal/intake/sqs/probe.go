package sqs

import (
	"encoding/json"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

// readProbe reads a test message that Lifeboat's own doctor sent through a rule. It is never a
// notice, also with other content.
func readProbe(e *envelope) (decoded, error) {
	var detail struct {
		Probe struct {
			ID      string `json:"id"`
			Cluster string `json:"cluster"`
			Rule    string `json:"rule"`
			Sent    string `json:"sent"`
		} `json:"lifeboat-probe"`
	}
	if err := e.into(&detail); err != nil {
		return decoded{}, err
	}
	p := intake.Probe{
		ID: strings.TrimSpace(detail.Probe.ID), Cluster: strings.TrimSpace(detail.Probe.Cluster), Rule: strings.TrimSpace(detail.Probe.Rule),
	}
	if sent, err := moment("detail.lifeboat-probe.sent", detail.Probe.Sent); err == nil {
		p.Sent = sent
	}
	if !p.Valid() {
		return decoded{unconcern: "it says that it is a probe, and lacks its id or rule"}, nil
	}
	return decoded{probe: &p}, nil
}

// drill reports whether the message says that it is a drill, and which.
func (e *envelope) drill() (id string, marked bool) {
	var detail struct {
		Drill json.RawMessage `json:"lifeboat-drill"`
	}
	if json.Unmarshal(e.Detail, &detail) != nil || len(detail.Drill) == 0 {
		return "", false
	}
	_ = json.Unmarshal(detail.Drill, &id) // a mark that is no string has no id, and is not permitted
	return strings.TrimSpace(id), true
}
