//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

var update = flag.Bool("update", false, "write the roles of Karpenter's charts again")

// TestKarpenterHasRolesOfItsChart compares the roles that the sandbox gives to Karpenter with those
// that Karpenter's own chart gives to it.
func TestKarpenterHasRolesOfItsChart(t *testing.T) {
	t.Parallel()
	clients, err := assets.EnsureHelm(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"karpenter", "karpenter-older"} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			var source struct{ Version, Dir string }
			download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/aws/karpenter-provider-aws")
			download.Dir = filepath.Join("..", "..", "modules", module)
			answer, err := download.Output()
			if err != nil {
				t.Fatalf("downloading Karpenter: %v", err)
			}
			if err := json.Unmarshal(answer, &source); err != nil {
				t.Fatal(err)
			}
			args := []string{"template", "karpenter", filepath.Join(source.Dir, "charts", "karpenter"), "--namespace", "kube-system", "--set", "settings.clusterName=sandbox"}
			for _, file := range []string{"clusterrole-core", "clusterrole", "role", "rolebinding"} {
				args = append(args, "--show-only", "templates/"+file+".yaml")
			}
			want, err := exec.CommandContext(t.Context(), filepath.Join(clients.Clients, "helm"), args...).Output()
			if err != nil {
				t.Fatalf("rendering Karpenter's chart: %v", err)
			}
			minor := source.Version[:strings.LastIndexByte(source.Version, '.')]
			file := filepath.Join("..", "karpenter", "manifests", "rbac-"+minor+".yaml")
			if *update {
				write(t, file, string(want))
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs from the chart of %s, run this test with -update (-want +got):\n%s", file, source.Version, diff)
			}
		})
	}
}

// checkRights fails the test if RBAC refused a request of Karpenter.
func (r *rig) checkRights() {
	r.t.Helper()
	log, err := os.ReadFile(r.KarpenterLog())
	if err != nil {
		r.t.Error(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, karpenter.User+`\" cannot `) {
			r.t.Errorf("Karpenter's chart does not allow what it asks for: %s", line)
		}
	}
}

// readsQueue is an IAM policy with all rights outside of SQS, and for SQS with those of Karpenter's
// own policy (Karpenter, reference/cloudformation, AllowInterruptionQueueActions), except one.
func readsQueue(except string) string {
	actions := slices.DeleteFunc([]string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, func(a string) bool { return a == except })
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","NotAction":"sqs:*","Resource":"*"},
		{"Effect":"Allow","Action":["%s"],"Resource":"arn:aws:sqs:*:*:karpenter"}]}`, strings.Join(actions, `","`))
}

// TestKarpenterReadsQueueWithItsPolicy interrupts an instance while Karpenter has only the rights of
// its own policy for its queue. Without one of them, Karpenter does not handle the interruption.
func TestKarpenterReadsQueueWithItsPolicy(t *testing.T) {
	t.Parallel()
	for name, except := range map[string]string{"complete": "", "twin without ReceiveMessage": "sqs:ReceiveMessage"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newKarpenterRig(t, sandbox.Options{
				NoLifeboat: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true, KarpenterPolicy: readsQueue(except),
			})
			r.apply(deployment("web", 1, 0))
			r.untilRunning("web", 1)
			in := r.EC2().Instances()[0]
			r.until("the node to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, in) })
			if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
				t.Fatal(err)
			}
			if except == "" {
				r.until("Karpenter to empty the node", time.Minute, func(context.Context) (bool, error) { return len(r.podsOn(in)) == 0, nil })
				return
			}
			r.until("Karpenter to be refused", time.Minute, func(context.Context) (bool, error) {
				log, err := os.ReadFile(r.KarpenterLog())
				return strings.Contains(string(log), "AccessDenied"), err
			})
			if len(r.podsOn(in)) == 0 {
				t.Error("the node is empty, although Karpenter cannot have read the notice")
			}
		})
	}
}
