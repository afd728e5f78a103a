package migrate_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func must(t testing.TB, files ...migrate.File) *migrate.Result {
	t.Helper()
	r, err := migrate.Convert(files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(text string) migrate.File { return migrate.File{Name: "a.yaml", Data: []byte(text)} }

// summary returns a finding in short form.
func summary(f migrate.Finding) string {
	return fmt.Sprintf("%s %s: %s %s", f.Severity, f.ID, f.Object, f.Path)
}

func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) < 2 {
		t.Fatalf("%d inputs: %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(input, ".in.yaml")
			r := must(t, migrate.File{Name: filepath.Base(input), Data: data})
			golden(t, name+".out.yaml", string(r.Output))

			var problems strings.Builder
			for _, f := range r.Findings {
				fmt.Fprintf(&problems, "%d %s\n  %s\n", f.Line, summary(f), f.Problem)
				if f.Fix != "" {
					fmt.Fprintf(&problems, "  -> %s\n", f.Fix)
				}
			}
			golden(t, name+".findings.txt", problems.String())
			again(t, r)
		})
	}
}

// again converts an output a second time, which must change nothing.
func again(t testing.TB, r *migrate.Result) {
	t.Helper()
	second, err := migrate.Convert([]migrate.File{{Name: "again.yaml", Data: r.Output}})
	if err != nil {
		t.Fatalf("the output cannot be read: %v\n%s", err, r.Output)
	}
	if diff := cmp.Diff(string(r.Output), string(second.Output)); diff != "" || second.Converted > 0 {
		t.Errorf("converting the output changed %d documents (-first +second):\n%s", second.Converted, diff)
	}
	for _, f := range second.Findings {
		if f.Severity == finding.Info {
			t.Errorf("converting the output changed something: %s", summary(f))
		}
	}
}

func TestUnchangedDocumentsAreIdentical(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n", "# nothing\n", "---\n", "a:   1", "a: &x [1,  2]\nb: *x\n", "--- # first\na: 1\n---\n---\nb:   [ 2 ]\n...\n",
		"apiVersion: karpenter.sh/v1\nkind:   NodePool\nmetadata: {name: x}\n", "%YAML 1.1\n---\na: 1\n", "a: 1\r\nb: 2\r\n",
		"a: |\n  ---\n  b\n", "just text\n", "- 1\n- 2\n", "apiVersion: v1\nkind: List\nitems:\n-  a\n",
	} {
		r := must(t, one(text))
		if string(r.Output) != text || r.Converted != 0 || len(r.Findings) > 0 {
			t.Errorf("%q became %q: %v", text, r.Output, r.Findings)
		}
	}
}

func TestFilesAreJoined(t *testing.T) {
	t.Parallel()
	r := must(t, migrate.File{Name: "a", Data: []byte("a: 1")}, migrate.File{Name: "b", Data: []byte("b: 2\n---\nc: 3")}, migrate.File{Name: "c", Data: []byte("---\nd: 4\n")})
	if want := "a: 1\n---\nb: 2\n---\nc: 3\n---\nd: 4\n"; string(r.Output) != want || r.Unchanged != 4 {
		t.Errorf("%d documents:\n%s", r.Unchanged, r.Output)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]migrate.SyntaxError{
		"a: 1\n---\nb: 2\n\tc: 3\n":        {Line: 3, Problem: "found a tab character that violates indentation"},
		"a: 1\n---\nb: [1\n---\nc: 3\n":    {Line: 3},
		"kind: {{ .Values.kind }}\nb: *no": {Template: true},
		"a: 1\nb: {{ .Values.b }}\n":       {Line: 2, Template: true, Problem: "a key is a list or a mapping, which Kubernetes manifests cannot have"},
		"a: *missing\n":                    {Problem: "unknown anchor 'missing' referenced"},
		"a: 1\n...\nb: 2\n":                {Line: 3, Problem: "did not find expected <document start>"},
		bomb():                             {Line: 1, Problem: "the document is larger than 200000 values or deeper than 100"},
		strings.Repeat("[", 200) + strings.Repeat("]", 200): {Line: 1, Problem: "the document is larger than 200000 values or deeper than 100"},
	} {
		_, err := migrate.Convert([]migrate.File{one(text)})
		var got *migrate.SyntaxError
		if !errors.As(err, &got) {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		if want.Line != 0 && got.Line != want.Line || want.Problem != "" && got.Problem != want.Problem || got.Template != want.Template {
			t.Errorf("%.40q: %+v, want %+v", text, *got, want)
		}
		if !strings.Contains(err.Error(), "reading a.yaml") {
			t.Errorf("%v does not name the file", err)
		}
	}
}

// bomb is small, and huge when its aliases are expanded.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 6 {
		fmt.Fprintf(&b, "b%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i+1, i, i, i, i, i, i, i, i, i)
	}
	return b.String()
}

// kubectl and the API server keep the last of two keys.
func TestLastDuplicateKeyIsKept(t *testing.T) {
	t.Parallel()
	const text = "a: {b: 1, c: 2, b: 3}\nd: x\nd: {e: 5}\n"
	r := must(t, one(text))
	var before, after any
	if err := yaml.Unmarshal([]byte(text), &before); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(r.Output, &after); err != nil {
		t.Fatalf("%v:\n%s", err, r.Output)
	}
	if diff := cmp.Diff(before, after); diff != "" || len(r.Findings) != 2 {
		t.Errorf("%d findings (-before +after):\n%s", len(r.Findings), diff)
	}
}

func TestAnchorsAreExpandedOnlyInChangedDocuments(t *testing.T) {
	t.Parallel()
	r := must(t, one("base: &base {a: 1, b: 2}\nmade:\n  <<: *base\n  b: 3\nmany:\n  <<: [*base, {a: 9, c: 4}]\nmetadata:\n  annotations: {karpenter.sh/do-not-evict: \"true\"}\n"))
	var got map[string]any
	if err := yaml.UnmarshalStrict(r.Output, &got); err != nil {
		t.Fatalf("%v:\n%s", err, r.Output)
	}
	want := map[string]any{
		"base": map[string]any{"a": 1.0, "b": 2.0}, "made": map[string]any{"a": 1.0, "b": 3.0}, "many": map[string]any{"a": 1.0, "b": 2.0, "c": 4.0},
		"metadata": map[string]any{"annotations": map[string]any{"karpenter.sh/do-not-disrupt": "true"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzConvert(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range strings.SplitAfter(string(data), "---\n") {
			f.Add(text)
		}
	}
	f.Add("? {a: b}\n: c\n? {a: b}\n: d\n")
	f.Add("a: &a\n  <<: *a\n")
	f.Add("metadata:\n  annotations: {karpenter.sh/do-not-evict: 'true', karpenter.sh/do-not-evict: 'false'}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := migrate.Convert([]migrate.File{one(text)})
		if err != nil {
			return
		}
		again(t, r)
	})
}

func TestChangedJSONBecomesYAML(t *testing.T) {
	t.Parallel()
	r := must(t, one(`{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"},
"spec": {"disruption": {"expireAfter": "Never"}, "template": {"spec": {"nodeClassRef": {"name": "a"}, "requirements": []}}}}`))
	const want = `"apiVersion": "karpenter.sh/v1"
"kind": "NodePool"
"metadata":
  "name": "a"
"spec":
  "disruption":
    consolidateAfter: 0s
  "template":
    "spec":
      "nodeClassRef":
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        "name": "a"
      expireAfter: "Never"
      "requirements": []
`
	if diff := cmp.Diff(want, string(r.Output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again(t, r)
}

// A NodePool with a kubelet that refers to the EC2NodeClass c.
func pool(name, kubelet string) string {
	return "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: " + name + "}\nspec:\n  template:\n    spec:\n" +
		"      expireAfter: Never\n      nodeClassRef: {name: c}\n      kubelet: " + kubelet + "\n---\n"
}

func class(spec string) string {
	return "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: c}\nspec: " + spec + "\n"
}

func TestKubelets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want string // the kubelet of each object after the conversion
		bad  string // a part of the finding, if it cannot be moved
	}{
		"one pool":               {pool("a", "{maxPods: 5}") + class("{}"), "- {maxPods: 5}", ""},
		"two that agree":         {pool("a", "{maxPods: 5}") + pool("b", "{maxPods: 5}") + class("{}"), "- - {maxPods: 5}", ""},
		"two that do not":        {pool("a", "{maxPods: 5}") + pool("b", "{maxPods: 6}") + class("{}"), "{maxPods: 5} {maxPods: 6} -", "have different settings: a, b"},
		"one of two has none":    {pool("a", "{}") + pool("b", "{maxPods: 6}") + class("{}"), "{} {maxPods: 6} -", "have different settings: a, b"},
		"none has any":           {pool("a", "{}") + pool("b", "null") + class("{}"), "- - -", ""},
		"the class is missing":   {pool("a", "{maxPods: 5}"), "{maxPods: 5}", "EC2NodeClass c is not in these files"},
		"the class has the same": {pool("a", "{maxPods: 5}") + class("{kubelet: {maxPods: 5}}"), "- {maxPods: 5}", ""},
		"the class has another":  {pool("a", "{maxPods: 5}") + class("{kubelet: {maxPods: 9}}"), "{maxPods: 5} {maxPods: 9}", "already has another one: {maxPods: 9}"},
		"the reference is foreign": {strings.Replace(pool("a", "{maxPods: 5}"), "{name: c}", "{apiVersion: x.example.com/v1, kind: X, name: c}", 1) + class("{}"),
			"{maxPods: 5} -", "this NodePool refers to none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := must(t, one(tc.text))
			if got := kubelets(t, string(r.Output)); got != tc.want {
				t.Errorf("kubelets are %s, want %s:\n%s", got, tc.want, r.Output)
			}
			problems := ""
			for _, f := range r.Findings {
				if f.Severity == finding.Broken {
					problems += f.Problem + "\n"
				}
			}
			if (problems != "") != (tc.bad != "") || !strings.Contains(problems, tc.bad) {
				t.Errorf("finding %q, want %q", problems, tc.bad)
			}
			again(t, r)
		})
	}
}

// kubelets returns the kubelets of a text's documents: "-" for none.
func kubelets(t *testing.T, text string) string {
	t.Helper()
	var out []string
	for _, document := range strings.Split(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		_, after, found := strings.Cut(document, "kubelet:")
		value := "-"
		if found {
			value = strings.NewReplacer("}}", "}").Replace(strings.TrimSpace(after))
			if rest, ok := strings.CutPrefix(value, "maxPods"); ok {
				value = "{maxPods" + rest + "}"
			}
		}
		out = append(out, value)
	}
	return strings.Join(out, " ")
}

func TestGuideDescribesEveryFinding(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/migrate-karpenter.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`c\.(?:addFinding\(o, [a-zF.]+[a-zA-Z]*|addFinding\(p, [a-zA-Z.]+|recordChange\([a-z]+), "([a-z0-9-]+)"`).FindAllSubmatch(text, -1) {
			seen++
			if !strings.Contains(string(guide), "`"+string(m[1])+"`") {
				t.Errorf("%s: the guide does not have the finding %s", source, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d findings found in the source", seen)
	}
}
