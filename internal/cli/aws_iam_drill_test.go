package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// spot launches a spot instance with tags, and waits until it runs.
func (e *awsAccount) spot(tags map[string]string) string {
	e.t.Helper()
	launched, err := e.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Type: "m5.large", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}, Tags: tags})
	if err != nil {
		e.t.Fatal(err)
	}
	for range 2000 {
		if in, _ := e.server.States.EC2.Instance(launched[0].ID); in.State == ec2.Running {
			return in.ID
		}
		time.Sleep(5 * time.Millisecond)
	}
	e.t.Fatal("the instance does not run")
	return ""
}

// TestDrillRoleInterruptsOnlyNodesOfCluster uses the role that the command creates.
func TestDrillRoleInterruptsOnlyNodesOfCluster(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	made := e.aws("iam", "--role", "fis", "--create", "-o", "json")
	e.want(made, ExitOK)
	var role drillPermissions
	if err := json.Unmarshal([]byte(made.out), &role); err != nil || role.ARN != "arn:aws:iam::123456789012:role/lifeboat-drill-prod" {
		t.Fatalf("%v: %s", err, made.out)
	}
	for _, tc := range []struct {
		tags map[string]string
		code int
		want string
	}{
		{map[string]string{"kubernetes.io/cluster/prod": "owned"}, ExitOK, ""},
		{map[string]string{"eks:cluster-name": "prod"}, ExitOK, ""},
		{map[string]string{"kubernetes.io/cluster/dev": "owned"}, ExitFailed, "is not authorized to perform: ec2:SendSpotInstanceInterruptions"},
	} {
		id := e.spot(tc.tags)
		e.cluster = fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id))
		r := e.run(t.Context(), "interrupt", id, "--sandbox=default", "--fis-role-arn", role.ARN)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("tags %v: exit code %d: %s%s", tc.tags, r.code, r.out, r.err)
		}
	}
}

func TestDrillRoleIsCorrectedButNotTakenOver(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	text := e.aws("iam", "--role", "fis")
	e.want(text, ExitOK)
	golden(t, "aws-iam-fis.golden", text.out)
	if _, err := e.server.States.IAM.Role("lifeboat-drill-prod"); err == nil {
		t.Error("the role was created without --create")
	}
	e.want(e.aws("iam", "--role", "fis", "--create"), ExitOK)
	state := e.server.States.IAM
	good, err := state.Role("lifeboat-drill-prod")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{state.SetTrust(good.Name, "{}"), state.DeleteRolePolicy(good.Name, awssetup.DrillPolicy)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := e.aws("iam", "--role", "fis", "--create"); r.code != ExitOK || !strings.Contains(r.out, "The role was corrected") {
		t.Errorf("again: exit code %d: %s%s", r.code, r.out, r.err)
	}
	policy, err := state.RolePolicy(good.Name, awssetup.DrillPolicy)
	if role, _ := state.Role(good.Name); err != nil || role.Trust != good.Trust || !strings.Contains(policy, "kubernetes.io/cluster/prod") {
		t.Errorf("not corrected: trust %s, policy %s, %v", role.Trust, policy, err)
	}
	if _, err := state.CreateRole("lifeboat-drill-dev", "", "{}", nil); err != nil {
		t.Fatal(err)
	}
	r := e.run(t.Context(), "aws", "iam", "--sandbox=default", "--cluster", "dev", "--role", "fis", "--create")
	if other, _ := state.Role("lifeboat-drill-dev"); r.code != ExitFailed || !strings.Contains(r.err, "nothing was changed") || other.Trust != "{}" {
		t.Errorf("a role of another owner: exit code %d, trust %s: %s", r.code, other.Trust, r.err)
	}
}

func TestDrillRoleNeedsConfirmationOnAWS(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	r := h.run(t.Context(), "aws", "iam", "--cluster", "prod", "--account", "123456789012", "--region", "us-east-1", "--role", "controller", "--create")
	if r.code != ExitUsage || !strings.Contains(r.err, "add --role fis") {
		t.Errorf("another role: exit code %d: %s", r.code, r.err)
	}
	r = h.run(t.Context(), "aws", "iam", "--cluster", "prod", "--account", "123456789012", "--region", "us-east-1", "--role", "fis", "--create")
	if r.code == ExitOK || !strings.Contains(r.err, "--yes") {
		t.Errorf("without a terminal: exit code %d: %s", r.code, r.err)
	}
}
