//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// TestGuideBlocksRun runs every shell block of README and of the guides against a sandbox, in the order of the
// page, except those with the fence ```sh no-run: REASON. It sends every manifest of Lifeboat's
// API to the API server. Commands are replaced only as guideShell says.
func TestGuideBlocksRun(t *testing.T) {
	t.Parallel()
	need.Program(t, "aws")
	need.Program(t, "jq")
	r := newRig(t)
	g := newGuideShell(r)
	for _, page := range guidePages {
		t.Run(page.name, func(t *testing.T) { g.page(t, page) })
	}
	used, err := os.ReadFile(g.used)
	if err != nil {
		t.Fatal(err)
	}
	for command := range notServed {
		if !strings.Contains(string(used), command) {
			t.Errorf("no guide uses %q any more: remove it from the list", command)
		}
	}
}

// page runs a page's blocks in a directory of its own.
func (g *guideShell) page(t *testing.T, p guidePage) {
	if p.fresh { // nothing but the program's own output points at the sandbox
		fresh := *g
		fresh.env, g = g.env[:g.kept:g.kept], &fresh
	}
	text, err := os.ReadFile(filepath.Join("../../docs/guides", p.name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	words := g.boot(t, p)
	manifests, ran := 0, 0
	if !p.fresh {
		g.run(t, dir, "before the first block", g.files)
	}
	for _, b := range doccommands.Blocks(string(text)) {
		at := fmt.Sprintf("%s:%d", p.name, b.Line)
		switch {
		case b.Lang == "yaml" && strings.HasPrefix(b.Text, "apiVersion: lifeboat.dev/"):
			manifests++
			file := fmt.Sprintf("manifest-%d.yaml", manifests)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			g.run(t, dir, at, "kubectl apply --server-side --force-conflicts --dry-run=server --validate=strict -f "+file)
		case b.Lang == "sh" && b.NoRun == "" && !startsOneOf(b.Text, p.elsewhere):
			for start, commands := range p.before {
				if strings.HasPrefix(b.Text, start) {
					g.run(t, dir, "before "+at, words.Replace(commands))
				}
			}
			ran++
			if out := g.run(t, dir, at, words.Replace(b.Text)); p.fresh && strings.Contains(out, "BROKEN") {
				t.Errorf("%s: something is broken in a new sandbox", at)
			}
		}
	}
	if manifests < p.manifests || ran < p.blocks {
		t.Errorf("%d manifests and %d blocks, want at least %d and %d", manifests, ran, p.manifests, p.blocks)
	}
}

func startsOneOf(text string, starts map[string]string) bool {
	for start := range starts {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// boot starts an instance for each node of a page, and returns what replaces the page's words.
func (g *guideShell) boot(t *testing.T, p guidePage) *strings.Replacer {
	words := append([]string{"--cluster prod", "--cluster " + p.cluster, "eu-west-1", g.r.State().Region}, p.words...)
	for _, n := range p.nodes {
		in := g.r.launchAll(ec2.LaunchInput{
			ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Spot: &ec2.SpotOptions{},
			Tags: map[string]string{"kubernetes.io/cluster/" + g.r.Wiring().Cluster: "owned", machines.TagNodeLabels: n.labels},
		})[0]
		if n.record != "" {
			words = append(words, n.record, in.ID)
		}
		words = append(words, n.name, in.PrivateDNSName)
	}
	return strings.NewReplacer(words...)
}

// run runs commands as a person would type them into one shell, and returns their output.
func (g *guideShell) run(t *testing.T, dir, what, commands string) string {
	t.Helper()
	script := "set -eo pipefail\n" + g.prelude + untilCtrlC.ReplaceAllString(commands, "interrupted $1\n")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(g.env, "HOME="+dir)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%s (%.1f s)\n%s%s", what, time.Since(began).Seconds(), commands, out)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return string(out)
}

// guideShell is the shell in which the blocks run. It differs from that of a person in this:
//   - a person confirms, so the wrapper of lifeboat adds --yes. The exit codes that report a
//     finding are no failures;
//   - the sandbox of the test represents the one of `lifeboat sandbox up`. Except on the pages that
//     are fresh, which get it from `lifeboat sandbox env` as a person does, the commands see its
//     cluster and its AWS as those of a user;
//   - bin/lifeboat is built already, and `make build` does nothing;
//   - `helm install` and `helm upgrade` render the chart, and the API server validates the result
//     as a dry run. The test in sandbox/e2e/install really installs it;
//   - a command with the comment "until Ctrl-C" gets that signal;
//   - commands of notServed do nothing.
type guideShell struct {
	r                    *rig
	env                  []string
	kept                 int // of env: what a fresh shell has
	prelude, files, used string
}

func newGuideShell(r *rig) *guideShell {
	t := r.t
	t.Helper()
	programs, err := assets.EnsureKarpenter(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := assets.EnsureHelm(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cli, err := lifeboat()
	if err != nil {
		t.Fatal(err)
	}
	crds, err := karpenter.CRDs(t.Context(), programs.Karpenter)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		r.apply(crd)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	g := &guideShell{r: r, prelude: guidePrelude, used: filepath.Join(bin, "used")}
	g.files = strings.ReplaceAll(guideFiles, "ROOT", root)
	exports := filepath.Join(bin, "exports")
	write(t, exports, r.State().Exports())
	write(t, g.used, "")
	for name, path := range map[string]string{
		"make": "", "lifeboat": cli, "helm": filepath.Join(clients.Clients, "helm"), "aws": need.Program(t, "aws"), "kops": "false", "terraform": "false", "cdk": "",
	} {
		script := strings.NewReplacer("ROOT", root, "REAL", path, "EXPORTS", exports, "NOTSERVED", notServedCases(name, g.used)).Replace(guidePrograms[name])
		write(t, filepath.Join(bin, name), "#!/bin/bash\n"+script)
	}
	g.env = []string{
		"PATH=" + strings.Join([]string{bin, clients.Clients, os.Getenv("PATH")}, ":"),
		"AWS_PAGER=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "XDG_STATE_HOME=" + r.stateHome(),
	}
	g.kept = len(g.env)
	for _, v := range r.State().Env() {
		g.env = append(g.env, v.Name+"="+v.Value)
	}
	g.env = append(g.env, sandboxstate.NameEnv+"=")
	return g
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
