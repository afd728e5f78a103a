package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/bundle"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

const (
	// logLines and logBytes limit the log of one container.
	logLines = 5000
	logBytes = 5 << 20
	// metricsPort is the name of the port of the controller's metrics.
	metricsPort = "metrics"
)

const supportBundleHelp = `Write one archive for people who help with a problem. It has the objects of Lifeboat's
API, Events, and the settings of the controller and the agents. It also has the output
of status and doctor, metrics, and the controller's logs.

Secrets and ConfigMaps are never read. The paths of webhook URLs, their headers and
bodies, and the values of environment variables are removed. The archive contains names of nodes
and pods, and the id of the AWS account: read the list of contents before you send it.

A part that cannot be read is named in errors.txt, and the others are written.`

func newSupportBundle(s *session) *cobra.Command {
	var file string
	var noDoctor bool
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect what helps to find a problem in one archive",
		Long:  supportBundleHelp,
		Example: `  lifeboat support-bundle
  lifeboat support-bundle --file /tmp/prod.tar.gz --no-doctor`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = "lifeboat-support-" + s.now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			return s.supportBundle(cmd.Context(), file, !noDoctor)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "archive to write (default: lifeboat-support-TIME.tar.gz)")
	cmd.Flags().BoolVar(&noDoctor, "no-doctor", false, "leave out the output of lifeboat doctor, which calls AWS")
	return cmd
}

func (s *session) supportBundle(ctx context.Context, file string, withDoctor bool) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("creating the archive: %w; choose another name with --file", err)
	}
	defer func() { _ = out.Close() }() // an error of the last write is returned below
	b := bundle.New(out, s.now())
	progress := terminal.NewProgress(s.err)
	progress.Step("reading the cluster")
	s.collectObjects(ctx, c, b)
	s.collectOutput(ctx, b, "status.json", "status", "-o", "json")
	s.collectOutput(ctx, b, "version.json", "version", "-o", "json")
	if withDoctor {
		progress.Step("asking the doctor")
		s.collectOutput(ctx, b, "doctor.json", "doctor", "-o", "json")
	}
	progress.Step("reading logs and metrics")
	collectPods(ctx, c, b)
	progress.Stop()
	contents, err := b.Close()
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	s.out.Printf("%s\n", s.out.Paint(terminal.Bold, file))
	for _, e := range contents {
		s.out.Printf("  %8d  %s\n", e.Size, e.Name)
	}
	s.out.Printf("No Secret and no ConfigMap was read. Names of nodes and pods, and the AWS account, are in it.\n")
	return nil
}

// objectList is a list of objects of the API, and its name in the archive.
type objectList struct {
	name string
	list client.ObjectList
	opts []client.ListOption
}

// collectObjects adds objects of the API. Secrets and ConfigMaps are not among them.
func (s *session) collectObjects(ctx context.Context, c cluster, b *bundle.Bundle) {
	own := client.InNamespace(lifeboatNamespace)
	for _, part := range append(agentLists(ctx, c), []objectList{
		{"policies", &v1beta1.InterruptionPolicyList{}, nil},
		{"interruptions", &v1beta1.InterruptionList{}, nil},
		{"nodegroups", &v1beta1.NodeGroupList{}, nil},
		{"nodenotices", &v1beta1.NodeNoticeList{}, nil},
		{"pauses", &v1beta1.PauseList{}, nil},
		{"deployments", &appsv1.DeploymentList{}, []client.ListOption{own}},
		{"daemonsets", &appsv1.DaemonSetList{}, []client.ListOption{own}},
		{"pods", &corev1.PodList{}, []client.ListOption{own}},
		{"leases", &coordinationv1.LeaseList{}, []client.ListOption{own}},
		{"events", &corev1.EventList{}, []client.ListOption{own}},
		{"events-of-nodes", &corev1.EventList{}, []client.ListOption{client.InNamespace(corev1.NamespaceDefault)}},
	}...) {
		err := c.list(ctx, part.name, part.list, part.opts...)
		if err == nil {
			var text []byte
			if text, err = json.Marshal(part.list); err == nil {
				err = b.AddJSON("objects/"+part.name+".json", text)
			}
		}
		b.Failed(part.name, err)
	}
}

// agentLists are the lists of the agents, if they have another namespace than the controller.
func agentLists(ctx context.Context, c cluster) []objectList {
	agents, err := c.findAgents(ctx)
	if err != nil || agents == nil || agents.Namespace == lifeboatNamespace {
		return nil // an error repeats at the controller's namespace
	}
	in := []client.ListOption{client.InNamespace(agents.Namespace)}
	return []objectList{
		{"agents-daemonsets", &appsv1.DaemonSetList{}, in},
		{"agents-pods", &corev1.PodList{}, in},
		{"agents-events", &corev1.EventList{}, in},
	}
}

// collectOutput adds the output of another command. It uses the same connection.
func (s *session) collectOutput(ctx context.Context, b *bundle.Bundle, name string, args ...string) {
	var out, problems bytes.Buffer
	if s.flags.Sandbox != "" {
		args = append(args, "--sandbox", s.flags.Sandbox)
	}
	other := newSession(Env{Args: append([]string{"lifeboat"}, args...), In: strings.NewReader(""), Out: &out, Err: &problems, Getenv: s.env.Getenv})
	other.now, other.clientVersion = s.now, s.clientVersion
	other.connect, other.connectCloud, other.findSandbox, other.observeGroup = s.connect, s.connectCloud, s.findSandbox, s.observeGroup
	code := other.run(ctx)
	if out.Len() > 0 {
		b.Failed(name, b.Add(name, out.Bytes()))
	}
	if code != ExitOK && problems.Len() > 0 {
		b.Failed(fmt.Sprintf("lifeboat %s (exit code %d)", args[0], code), fmt.Errorf("%s", strings.TrimSpace(problems.String())))
	}
}

// collectPods adds the logs and the metrics of the pods of the controller.
func collectPods(ctx context.Context, c cluster, b *bundle.Bundle) {
	if c.raw == nil {
		return
	}
	var pods corev1.PodList
	if err := c.list(ctx, "the pods of Lifeboat", &pods, client.InNamespace(lifeboatNamespace), client.MatchingLabels{nameLabel: "lifeboat", componentLabel: "controller"}); err != nil {
		b.Failed("logs", err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
		logs := fmt.Sprintf("%s/log?container=%s&tailLines=%d&limitBytes=%d", path, firstContainer(pod), logLines, logBytes)
		for _, part := range []struct{ name, path string }{
			{"logs/" + pod.Name + ".log", logs},
			{"logs/" + pod.Name + "-previous.log", logs + "&previous=true"},
			{"metrics/" + pod.Name + ".txt", path + ":" + metricsPort + "/proxy/metrics"},
		} {
			if strings.Contains(part.path, "previous") && !restarted(pod) {
				continue
			}
			text, err := c.read(ctx, part.path)
			if err == nil {
				err = b.Add(part.name, text)
			}
			b.Failed(part.name, err)
		}
	}
}

func firstContainer(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

func restarted(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0
}

// read reads a path of the API server that is not an object.
func (c cluster) read(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	body, err := c.raw(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer func() { _ = body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(body, 2*logBytes))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
}
