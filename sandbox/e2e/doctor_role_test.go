//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// roleLacksAction runs the doctor with the controller's role, which is the only way in which it
// sees that role.
func (p *patient) roleLacksAction(t *testing.T) {
	cfg, err := p.ControllerAWSConfig()
	p.must(err)
	credentials, err := cfg.Credentials.Retrieve(t.Context())
	p.must(err)
	t.Setenv("AWS_ACCESS_KEY_ID", credentials.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", credentials.SecretAccessKey)
	well := p.findings()
	policy := p.rolePolicy("lifeboat aws iam --cluster " + p.Wiring().Cluster)
	put := func(policy string) {
		p.must(p.AWS().States.IAM.PutRolePolicy("lifeboat-controller", "lifeboat", policy))
	}
	put(strings.ReplaceAll(policy, "sqs:DeleteMessage", "sqs:GetQueueAttributes"))
	fix := ""
	for _, f := range beyond(p.findings(), well) {
		if f.ID == "permission-missing" && f.Object == "permission sqs:DeleteMessage" && f.Severity == "warning" {
			fix = f.Fix
		}
	}
	_, command, found := strings.Cut(fix, ": ")
	if !found {
		t.Fatalf("the missing action is not found: %q", fix)
	}
	put(p.rolePolicy(command))
	p.until("the role to be complete", 20*time.Second, func(context.Context) (bool, error) {
		found := beyond(p.findings(), well)
		return len(found) == 0, errFound(found)
	})
}

// rolePolicy returns the policy that a command prints.
func (p *patient) rolePolicy(command string) string {
	p.t.Helper()
	var printed struct{ Policy json.RawMessage }
	p.must(json.Unmarshal([]byte(p.lifeboat(append(strings.Fields(command)[1:], "-o", "json")...)), &printed))
	return string(printed.Policy)
}
