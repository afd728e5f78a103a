package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// Every likely error has a hint with the next step.
func TestHints(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	resource := schema.GroupResource{Group: "lifeboat.dev", Resource: "interruptions"}
	fromAWS := func(err error) error { return awsError{fmt.Errorf("asking: %w", err)} }
	code := func(code string) error { return fromAWS(&smithy.GenericAPIError{Code: code, Message: "no"}) }
	for _, c := range []struct {
		name, says string
		err        error
	}{
		{"no CRD", "Lifeboat is not installed in this cluster", fmt.Errorf("listing: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "lifeboat.dev", Kind: "Interruption"}})},
		{"the cluster is away", "The cluster does not answer", fmt.Errorf("listing: %w", refused)},
		{"the cluster is slow", "The cluster does not answer", context.DeadlineExceeded},
		{"not logged in", "log in again", apierrors.NewUnauthorized("who are you")},
		{"not allowed", "lack a permission", apierrors.NewForbidden(resource, "", errors.New("no"))},
		{"not allowed to approve", "which the ClusterRole lifeboat-operator has", apierrors.NewForbidden(resource, "", errors.New("no"))},
		{"speaking for another", "", apierrors.NewForbidden(resource, "", errors.New("ValidatingAdmissionPolicy 'lifeboat-interruptions' denied request: use `lifeboat approve`"))},
		{"no sandbox", "`lifeboat sandbox up` starts one", fmt.Errorf("looking: %w", sandboxstate.ErrNotRunning)},
		{"AWS is away", "AWS does not answer", fromAWS(refused)},
		{"no region", "set AWS_REGION", fromAWS(&aws.MissingRegionError{})},
		{"no credentials", "There are no AWS credentials", fromAWS(errors.New("get identity: get credentials: failed to refresh cached credentials"))},
		{"no queue", "--queue-url", fromAWS(&sqstypes.QueueDoesNotExist{})},
		{"denied", "lack a permission", code("AccessDeniedException")},
		{"expired", "aws sso login", code("ExpiredToken")},
		{"quota", "quota", code("ServiceQuotaExceededException")},
		{"not spot", "running spot instances only", fromAWS(&drill.NotInterruptibleError{Reasons: []string{"i-1 is not a spot instance"}})},
		{"unheard of", "", errors.New("something else")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(Env{Args: []string{"lifeboat"}, Getenv: func(string) string { return "" }})
			got := s.hint(c.err)
			if !strings.Contains(got, c.says) || (c.says == "") != (got == "") {
				t.Errorf("hint %q, want %q", got, c.says)
			}
		})
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: "arn:aws:eks:eu-west-1:123456789012:cluster/prod", cluster: {server: "http://%s"}}]
contexts: [{name: prod, context: {cluster: "arn:aws:eks:eu-west-1:123456789012:cluster/prod", user: me}}]
users: [{name: me, user: {}}]
current-context: prod
`

// The messages when the cluster is not reachable, with the real client.
func TestNoCluster(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(home, "dead")
	if err := os.WriteFile(dead, fmt.Appendf(nil, kubeconfig, address), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"no kubeconfig at all", nil, []string{"There is no kubeconfig", "lifeboat sandbox up"}},
		{"the file is not there", []string{"--kubeconfig", filepath.Join(home, "nowhere")}, []string{"nowhere", "Check the path"}},
		{"no such context", []string{"--kubeconfig", dead, "--context", "staging"}, []string{"staging", "kubectl config get-contexts"}},
		{"no one listens", []string{"--kubeconfig", dead}, []string{"connection refused", "The cluster does not answer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := (&harness{t: t}).run(t.Context(), append([]string{"plan", nodeName}, c.args...)...)
			if r.code != ExitFailed || r.out != "" {
				t.Errorf("exit code %d, standard output %q", r.code, r.out)
			}
			for _, want := range c.says {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q does not say %q", r.err, want)
				}
			}
		})
	}
}

func TestWatchReportsMissingInstallation(t *testing.T) {
	funcs := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "lifeboat.dev", Kind: "Interruption"}}
	}}
	r := (&harness{t: t, cluster: fakeCluster(t, funcs)}).run(t.Context(), "watch")
	if r.code != ExitFailed || !strings.Contains(r.err, "Install the chart") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"plam", ExitUsage, `lifeboat has no command "plam"; did you mean plan?`},
		{"xyzzy", ExitUsage, `lifeboat has no command "xyzzy"; see lifeboat --help`},
		{"plan", ExitUsage, "lifeboat plan takes one node or instance, got 0"},
		{"plan a b", ExitUsage, "got 2"},
		{"plan a --nonsense", ExitUsage, "unknown flag: --nonsense; see lifeboat plan --help"},
		{"watch -o yaml", ExitUsage, "use -o text or -o json"},
		{"nodegroup list -o wide", ExitUsage, "use -o text, -o json, -o yaml or -o name"},
		{"watch --sandbox dead --context prod", ExitUsage, "remove --sandbox, or remove --context"},
		{"plan " + nodeName + " --kind spott", ExitUsage, "write one of spot, rebalance, scheduled, health,"},
		{"plan " + nodeName + " --in -3m", ExitUsage, "such as 12d, 2h or 2m"},
		{"plan " + nodeName + " --margin -3s", ExitUsage, "cannot be negative"},
		{"plan ip-10-0-0-1.ec2.internal", ExitFailed, `node "ip-10-0-0-1.ec2.internal" not found; similar names: ip-10-0-0-10.ec2.internal, ip-10-0-0-11.ec2.internal, rack7`},
		{"plan i-0fedcba9876543210", ExitFailed, "no node of this cluster has the instance i-0fedcba9876543210"},
		{"interrupt", ExitUsage, "at least one node or instance"},
		{"interrupt a --kind stop", ExitUsage, "write one of spot, rebalance, scheduled,"},
		{"interrupt a --kind instance-status", ExitUsage, "Lifeboat reads it from EC2"},
		{"interrupt a --via sms", ExitUsage, "write fis or queue"},
		{"interrupt a --kind scheduled --via fis", ExitUsage, "FIS sends spot interruptions and rebalance recommendations only"},
		{"interrupt a --kind state --in 2m", ExitUsage, "--in does not apply to kind InstanceStateChange"},
		{"interrupt a --kind state --state running", ExitUsage, "write one of stopping, stopped, shutting-down, terminated"},
		{"interrupt a --action stop", ExitUsage, "--action works only with --via queue"},
		{"interrupt a --via queue --action reboot", ExitUsage, "write one of terminate, stop, hibernate"},
		{"interrupt a --kind scheduled --in soon", ExitUsage, "such as 12d, 2h or 2m"},
		{"interrupt a --kind scheduled --in 400d", ExitUsage, "up to 365d"},
		{"interrupt a --kind scheduled --cancel --in 2h", ExitUsage, "remove --in"},
		{"interrupt a --kind scheduled --event-type-code stop", ExitUsage, "codes begin with AWS_EC2_"},
		{"interrupt a --until dawn", ExitUsage, "write drained or completed"},
		{"interrupt a --interactive", ExitUsage, "remove the node arguments"},
		{"interrupt --interactive", ExitUsage, "standard input is none: name the nodes as arguments"},
		{"interrupt a --delay 14m", ExitUsage, "FIS allows 0s to 13m"},
		{"interrupt a --queue-url x", ExitUsage, "--queue-url works only with --via queue"},
		{"interrupt " + onPremNode, ExitFailed, "is not an EC2 instance"},
		{"interrupt " + nodeName + " --yes", ExitUsage, "add --fis-role-arn"},
	} {
		t.Run(c.args, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, twoNodes()...), setup: func(s *session) {
				s.connectCloud = func(context.Context, string) (cloud, error) { return cloud{}, nil }
			}}
			r := h.run(t.Context(), strings.Fields(c.args)...)
			if r.code != c.code || !strings.Contains(r.err, c.says) || r.out != "" {
				t.Errorf("exit code %d, want %d; %q does not say %q", r.code, c.code, r.err, c.says)
			}
		})
	}
}

func TestShortClusterName(t *testing.T) {
	for name, want := range map[string]string{
		"arn:aws:eks:eu-west-1:123456789012:cluster/prod": "prod",
		"prod.eu-west-1.eksctl.io":                        "prod",
		"k8s.example.org":                                 "k8s.example.org",
	} {
		if got := shortClusterName(name); got != want {
			t.Errorf("shortClusterName(%q) = %q, want %q", name, got, want)
		}
	}
}

// An endpoint on this machine can be a tunnel to AWS: only --sandbox skips the confirmation.
func TestLoopbackEndpointIsNoSandbox(t *testing.T) {
	e := newEmulated(t)
	t.Setenv("AWS_ENDPOINT_URL", e.endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "")
	s := newSession(Env{Args: []string{"lifeboat"}, Getenv: os.Getenv})
	c, err := s.connectAWS(t.Context(), "us-east-1a")
	if err != nil {
		t.Fatal(err)
	}
	if c.emulated || c.place.Account != e.Account() || c.place.Region != "us-east-1" {
		t.Errorf("got %+v", c.place)
	}
}
