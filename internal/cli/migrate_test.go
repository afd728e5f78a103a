package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The manifests are those of the tests of package migrate.
func manifests(name string) string { return filepath.Join("..", "migrate", "testdata", name) }

func TestMigrateKarpenter(t *testing.T) {
	text, err := os.ReadFile(manifests("walkthrough.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(manifests("walkthrough.out.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := (&harness{t: t, stdin: string(text)}).run(t.Context(), "migrate", "karpenter", "-f", "-")
	if r.out != string(want) || r.code != ExitOK {
		t.Errorf("exit code %d:\n%s", r.code, r.out)
	}
	golden(t, "migrate-walkthrough.golden", r.err)

	r = (&harness{t: t, stdin: r.out}).run(t.Context(), "migrate", "karpenter", "-f", "-")
	if r.out != string(want) || r.code != ExitOK || strings.Contains(r.err, "INFO") {
		t.Errorf("the second time: exit code %d:\n%s%s", r.code, r.err, r.out)
	}
}

func TestMigrateNTH(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "migrate", "nth", "testdata", "helm-queue.in.yaml")
	r := (&harness{t: t}).run(t.Context(), "migrate", "nth", "-f", name)
	if r.code != exitManualWork || !strings.Contains(r.out, "drainTimeout: 1h30m0s") || !strings.Contains(r.err, "complete-lifecycle-action-delay-seconds") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
	r = (&harness{t: t, stdin: "workers: 10\n"}).run(t.Context(), "migrate", "nth", "-f", "-")
	if r.code != ExitOK || r.out != "" || !strings.Contains(r.err, "no policy is needed") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
	r = (&harness{t: t, stdin: "a: b\n"}).run(t.Context(), "migrate", "nth", "-f", "-")
	if r.code != ExitFailed || !strings.Contains(r.err, "the values of its Helm chart, or its Deployment or DaemonSet") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
	if r = (&harness{t: t}).run(t.Context(), "migrate", "kured"); r.code != ExitUsage || !strings.Contains(r.err, `has no command "kured"`) {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestMigrateKarpenterManualWork(t *testing.T) {
	name := manifests("everything.in.yaml")
	r := (&harness{t: t}).run(t.Context(), "migrate", "karpenter", "-f", name)
	golden(t, "migrate-broken.golden", r.err)
	if r.code != exitManualWork || !strings.HasPrefix(r.out, "apiVersion: karpenter.sh/v1\n") {
		t.Errorf("exit code %d:\n%s", r.code, r.out)
	}

	r = (&harness{t: t}).run(t.Context(), "migrate", "karpenter", "-f", name, "-o", "json")
	var report conversionReport
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != exitManualWork || r.err != "" {
		t.Fatalf("exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	first := report.Findings[0]
	if first.ID != "kubelet" || first.Object != "NodePool batch" || first.Path != "spec.template.spec.kubelet" || first.Line != 21 || first.File != name ||
		report.Counts[finding.Broken] != 7 || report.Converted != 6 || report.Unchanged != 2 || !strings.HasPrefix(report.Output, "apiVersion: karpenter.sh/v1\n") {
		t.Errorf("%+v", report)
	}
}

func TestMigrateKarpenterRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"no file":       {"", nil, ExitUsage, "add -f FILE"},
		"an argument":   {"", []string{"a.yaml"}, ExitUsage, "files are given with -f"},
		"a lost file":   {"", []string{"-f", "/nowhere/a.yaml"}, ExitFailed, "Check the path."},
		"no YAML":       {"a: 1\nb: [\n", []string{"-f", "-"}, ExitFailed, "reading standard input, line 3: "},
		"a template":    {"a: {{ .Values.a }}\nb: 1\n", []string{"-f", "-"}, ExitFailed, "render it first, for example with helm template"},
		"nothing of it": {"a: 1\n", []string{"-f", "-"}, ExitOK, "There was nothing to convert in 1 document."},
	} {
		t.Run(name, func(t *testing.T) {
			r := (&harness{t: t, stdin: tc.stdin}).run(t.Context(), append([]string{"migrate", "karpenter"}, tc.args...)...)
			if r.code != tc.code || !strings.Contains(r.err, tc.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", r.code, tc.code, tc.want, r.err)
			}
		})
	}
}
