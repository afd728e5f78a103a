//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
)

// repository is a user's repository in a temporary directory.
type repository struct {
	t              *testing.T
	sources, dir   string
	misspelt, well string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	sources, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, sources: sources, dir: t.TempDir(), misspelt: "infra/wiring 1.yaml", well: "infra/other.yaml"}
	const rule = `Resources:
  Spot:
    Type: AWS::Events::Rule
    Properties:
      EventPattern: {source: [aws.ec2], detail-type: [EC2 Spot Interruption Warning]}
      Targets: [{Id: q, Arn: "arn:aws:sqs:eu-west-1:123456789012:q"}]
`
	if err := os.Mkdir(filepath.Join(r.dir, "infra"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{r.misspelt: rule, r.well: "kind: ConfigMap\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run runs a command in the repository and returns its output and exit code.
func (r *repository) run(env []string, name string, args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// readYAML reads a file of Lifeboat's repository.
func (r *repository) readYAML(into any, name ...string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{r.sources}, name...)...))
	if err == nil {
		err = yaml.UnmarshalStrict(text, into, yaml.DisallowUnknownFields)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// action is a composite action of GitHub.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description, Default string
		Required             bool
	}
	Runs struct {
		Using string
		Steps []struct {
			Name, Shell, Run string
			Env              map[string]string
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{\s*([^ }]+)\s*\}\}`)

// TestGitHubAction runs the scripts of the action as a runner does.
func TestGitHubAction(t *testing.T) {
	r := newRepository(t)
	var a action
	temp := t.TempDir()
	r.readYAML(&a, "deploy", "doctor", "action.yml")
	// with runs the steps until one fails.
	with := func(given map[string]string) (out string, code int) {
		values := map[string]string{"github.action_path": filepath.Join(r.sources, "deploy", "doctor")}
		for name, input := range a.Inputs {
			values["inputs."+name] = input.Default
		}
		for name, value := range given {
			values["inputs."+name] = value
		}
		for _, step := range a.Runs.Steps {
			env := []string{"RUNNER_TEMP=" + temp}
			for name, value := range step.Env {
				env = append(env, name+"="+expression.ReplaceAllStringFunc(value, func(e string) string {
					value, known := values[expression.FindStringSubmatch(e)[1]]
					if !known {
						t.Errorf("%s: %s is not known", step.Name, e)
					}
					return value
				}))
			}
			if expression.MatchString(step.Run) || step.Shell != "bash" {
				t.Fatalf("the script of %s contains an expression, or is not one of bash", step.Name)
			}
			// GitHub's documentation, "Workflow syntax", on shells.
			if out, code = r.run(env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run); code != 0 {
				break
			}
		}
		return out, code
	}
	for _, tc := range []struct {
		given map[string]string
		code  int
		out   string
		log   string // a line of the SARIF file; empty: it is not written
	}{
		{map[string]string{"files": "infra/*.yaml", "region": "eu-west-1"}, 1, "rule-matches-nothing", `"uri": "infra/wiring%201.yaml"`},
		{map[string]string{"files": "infra", "fail-on": "broken", "baseline": "accepted.json", "sarif": "own.sarif"}, 0, "The baseline accepts", `"results": []`},
		{map[string]string{"files": "missing.yaml"}, 3, "no such file", ""},
	} {
		if tc.given["baseline"] != "" {
			if out, code := r.run(nil, filepath.Join(temp, "lifeboat"), "doctor", "--offline", "-f", "infra", "--baseline", "accepted.json", "--write-baseline"); code != 0 {
				t.Fatalf("writing the baseline: exit code %d\n%s", code, out)
			}
		}
		out, code := with(tc.given)
		if code != tc.code || !strings.Contains(out, tc.out) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", tc.given, code, tc.code, tc.out, out)
		}
		name := tc.given["sarif"]
		if name == "" {
			name = "lifeboat-doctor.sarif"
		}
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || !strings.Contains(string(text), tc.log) || json.Valid(text) != (tc.log != "") {
			t.Errorf("%v: %v, want %s in\n%s", tc.given, err, tc.log, text)
		}
	}
}

// TestPreCommitHook runs the hook's entry as pre-commit does: with the files of the commit that
// its pattern matches.
func TestPreCommitHook(t *testing.T) {
	r := newRepository(t)
	var hooks []struct {
		ID, Name, Description, Language, Entry, Files string
		RequireSerial                                 bool  `json:"require_serial"`
		PassFilenames                                 *bool `json:"pass_filenames"`
	}
	r.readYAML(&hooks, ".pre-commit-hooks.yaml")
	if len(hooks) != 1 || hooks[0].PassFilenames != nil {
		t.Fatalf("%+v", hooks)
	}
	hook, dir := hooks[0], t.TempDir()
	lifeboat, err := program.Lifeboat(t.Context(), dir) // pre-commit installs it in a path of its own
	if err != nil {
		t.Fatal(err)
	}
	entry := strings.Fields(hook.Entry)
	if entry[0] != filepath.Base(lifeboat) {
		t.Fatalf("the entry runs %s", entry[0])
	}
	files := regexp.MustCompile(hook.Files)
	for _, tc := range []struct {
		changed []string
		code    int
		out     string
	}{
		{[]string{r.misspelt, r.well, "README.md"}, 1, "rule-matches-nothing"},
		{[]string{r.well}, 0, "No file is about wiring"},
	} {
		args := slices.DeleteFunc(slices.Clone(tc.changed), func(name string) bool { return !files.MatchString(name) })
		out, code := r.run(nil, lifeboat, append(slices.Clone(entry[1:]), args...)...)
		if code != tc.code || !strings.Contains(out, tc.out) {
			t.Errorf("%q: exit code %d, want %d and %q\n%s", args, code, tc.code, tc.out, out)
		}
	}
}
