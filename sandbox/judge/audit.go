package judge

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Policy is the audit policy that the judge needs. Writes carry their bodies. Reads, leases and
// Events say nothing about a promise.
const Policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch, deletecollection]
- level: RequestResponse
  resources:
  - {group: "", resources: [pods, pods/status, pods/eviction, pods/binding, nodes, nodes/status]}
  - {group: lifeboat.dev, resources: [interruptions, interruptions/status]}
  - {group: policy, resources: [poddisruptionbudgets]}
  - {group: batch, resources: [jobs, jobs/status]}
  - {group: karpenter.sh, resources: [nodeclaims, nodeclaims/status]}
- level: None
`

// Request is one write that the API server has completed.
type Request struct {
	// Received and Completed are when the API server received the request and when it responded.
	Received, Completed time.Time

	User, Verb                             string
	Resource, Subresource, Namespace, Name string
	Code                                   int
	// Body is the object of the request, and Object is that of the response.
	Body, Object json.RawMessage
}

// accepted reports whether the request took effect.
func (r Request) accepted() bool { return r.Code >= 200 && r.Code < 300 }

// ReadAudit reads an audit log (audit.k8s.io/v1, one JSON object a line) in the order in which the
// writes were stored. An incomplete last line is left out: a killed API server leaves one.
func ReadAudit(in io.Reader) ([]Request, error) {
	var out []Request
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		r, err := parseRequest(line)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Request) int { return a.Completed.Compare(b.Completed) })
	return out, sortVersions(out)
}

// sortVersions puts the writes of each object into the order in which they were stored, which is that
// of the resource versions. Concurrent requests can complete in another order.
func sortVersions(requests []Request) error {
	type slot struct {
		at      int
		version uint64
	}
	slots := map[string][]slot{}
	for i, r := range requests {
		var o struct {
			Kind     string
			Metadata struct{ ResourceVersion string }
		}
		if _, err := decode(r.Object, &o); err != nil {
			return err
		}
		if version, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64); err == nil && o.Kind != "Status" {
			key := r.Resource + "/" + r.Namespace + "/" + r.Name
			slots[key] = append(slots[key], slot{i, version})
		}
	}
	was := slices.Clone(requests)
	for _, of := range slots {
		stored := slices.Clone(of)
		slices.SortStableFunc(stored, func(a, b slot) int { return cmp.Compare(a.version, b.version) })
		for i, s := range stored {
			requests[of[i].at] = was[s.at]
		}
	}
	return nil
}

func parseRequest(line []byte) (Request, error) {
	var e struct {
		Verb      string
		User      struct{ Username string }
		ObjectRef struct{ Resource, Subresource, Namespace, Name string }
		Received  time.Time          `json:"requestReceivedTimestamp"`
		Completed time.Time          `json:"stageTimestamp"`
		Status    struct{ Code int } `json:"responseStatus"`
		Body      json.RawMessage    `json:"requestObject"`
		Object    json.RawMessage    `json:"responseObject"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Request{}, fmt.Errorf("reading the audit log: %w: %.200s", err, line)
	}
	return Request{
		Received: e.Received, Completed: e.Completed, User: e.User.Username, Verb: e.Verb,
		Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.Status.Code, Body: e.Body, Object: e.Object,
	}, nil
}
