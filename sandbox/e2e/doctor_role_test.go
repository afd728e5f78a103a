//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// roleLacksAction runs the doctor with the controller's role, which is the only way in which it
// sees that role. The role may not look up the queue by its name.
func (p *patient) roleLacksAction(t *testing.T) {
	cfg, err := p.ControllerAWSConfig()
	p.must(err)
	credentials, err := cfg.Credentials.Retrieve(t.Context())
	p.must(err)
	// On AWS this call needs no permission.
	p.must(p.AWS().States.IAM.PutRolePolicy("lifeboat-controller", "identity", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:GetCallerIdentity","Resource":"*"}]}`))
	p.env = append(slices.Clone(p.env), "AWS_ACCESS_KEY_ID="+credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+credentials.SecretAccessKey)
	well := p.findingsWith("--queue-url", p.State().QueueURL)
	policy := p.rolePolicy("lifeboat aws iam --cluster " + p.Wiring().Cluster)
	put := func(policy string) {
		p.must(p.AWS().States.IAM.PutRolePolicy("lifeboat-controller", "lifeboat", policy))
	}
	put(strings.ReplaceAll(policy, "sqs:DeleteMessage", "sqs:GetQueueAttributes"))
	fix := ""
	found := beyond(p.findingsWith("--queue-url", p.State().QueueURL), well)
	for _, f := range found {
		if f.ID == "permission-missing" && f.Object == "permission sqs:DeleteMessage" && f.Severity == "warning" {
			fix = f.Fix
		}
	}
	_, command, ok := strings.Cut(fix, ": ")
	if !ok {
		t.Fatalf("the missing action is not found: %q\n%v", policy, errFound(found))
	}
	put(p.rolePolicy(command))
	p.until("the role to be complete", 20*time.Second, func(context.Context) (bool, error) {
		found := beyond(p.findingsWith("--queue-url", p.State().QueueURL), well)
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
