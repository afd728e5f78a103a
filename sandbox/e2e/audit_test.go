package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/intake/imds"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// removalsPolicy makes the API server log every request that deletes or evicts a pod.
const removalsPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create], resources: [{group: "", resources: [pods/eviction]}]}
- {level: Metadata, verbs: [delete, deletecollection], resources: [{group: "", resources: [pods]}]}
- {level: None}
`

// request is one line of the audit log.
type request struct {
	Verb string
	User struct{ Username string }
	// ImpersonatedUser is the user whose permissions the request has, if it is not User.
	ImpersonatedUser struct{ Username string }
	UserAgent        string
	ObjectRef        struct{ APIGroup, Resource, Subresource, Name string }
	// StageTimestamp is when the request was answered.
	RequestReceivedTimestamp, StageTimestamp time.Time
	// ResponseStatus has no message at level Metadata.
	ResponseStatus struct{ Code int }
}

func (r request) String() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.ObjectRef.APIGroup + "/" + resource + " " + r.Verb
}

// auditArgs returns the API server's arguments for an audit policy, and the path of the log.
func auditArgs(t *testing.T, policy string) (args []string, log string) {
	t.Helper()
	dir := t.TempDir()
	path, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--audit-policy-file=" + path, "--audit-log-path=" + log, "--audit-log-mode=blocking"}, log
}

// readAudit reads the audit log, grouped by account.
func readAudit(t *testing.T, path string) map[string][]request {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string][]request{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatalf("reading the audit log: %v: %s", err, lines.Text())
		}
		if q.ObjectRef.Resource == "" || q.ObjectRef.Name == imds.ForeignName {
			continue // discovery, or the check of the admission policy
		}
		account := strings.TrimPrefix(q.User.Username, "system:serviceaccount:"+chart.Namespace+":")
		out[account] = append(out[account], q)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// removal counts lifeboatd's evictions and deletions of one pod.
type removal struct {
	accepted int
	cutOff   int // lifeboatd was killed before the response, so the request may have taken effect
}

// removals counts lifeboatd's evictions and deletions, by pod. Rejected requests do not count.
func (r *rig) removals() map[string]removal {
	r.t.Helper()
	out := map[string]removal{}
	for _, q := range readAudit(r.t, r.audit)[chart.ControllerAccount] {
		n := out[q.ObjectRef.Name]
		switch q.ResponseStatus.Code / 100 {
		case 2:
			n.accepted++
		case 4:
			continue
		default:
			n.cutOff++
		}
		out[q.ObjectRef.Name] = n
	}
	return out
}

// removedByStatefulSet returns the pods that a StatefulSet's controller deleted. It deletes a
// finished pod by name, without its UID, and so can delete the successor
// (pkg/controller/statefulset/stateful_pod_control.go of Kubernetes 1.36).
func (r *rig) removedByStatefulSet() map[string]bool {
	r.t.Helper()
	out := map[string]bool{}
	for _, requests := range readAudit(r.t, r.audit) {
		for _, q := range requests {
			if strings.HasSuffix(q.UserAgent, "/statefulset-controller") && q.ResponseStatus.Code/100 == 2 {
				out[q.ObjectRef.Name] = true
			}
		}
	}
	return out
}
