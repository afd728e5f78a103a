package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// programs are the programs that users install, with their maximum size in MB. One reachable
// call of reflect.Method, or of reflect.MethodByName with a name that is not constant, makes
// them much larger: the linker then keeps every exported method of every type. text/template has
// such a call. About 13 of lifeboatd's 46 MB are the types of all API groups of Kubernetes,
// which controller-runtime imports.
var programs = map[string]int64{"lifeboat": 45, "lifeboatd": 47}

func TestProgramsAreSmall(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^LDFLAGS := -s -w -X .*\n(?s:.*)^\t@CGO_ENABLED=0 go build -trimpath -ldflags '\$\(LDFLAGS\)' -o bin/ \./cmd/\.\.\.$`).Match(makefile) {
		t.Error("the Makefile builds with flags that this test does not use")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir, "./cmd/...")
	build.Dir, build.Env = root(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	for name, most := range programs {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s: %.1f MB", name, float64(info.Size())/1e6)
		if info.Size() > most*1e6 {
			t.Errorf("%s has %.1f MB, more than %d: look for what it links since (go list -deps, go version -m)", name, float64(info.Size())/1e6, most)
		}
	}
}

// Neither Helm nor netlink may be linked. Only cobra may import text/template, which it uses
// only for custom help templates.
func TestProgramsDoNotLinkSandbox(t *testing.T) {
	t.Parallel()
	for name := range programs {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./cmd/"+name)
		list.Dir = root(t)
		out, err := list.Output()
		if err != nil {
			t.Fatalf("listing what %s links: %v", name, err)
		}
		imports := 0
		for line := range strings.Lines(string(out)) {
			from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
			imports++
			switch {
			case regexp.MustCompile(`^helm\.sh/|^github\.com/(vishvananda|Masterminds)/|lifeboat/(emulator|sandbox)(/|$)`).MatchString(to),
				regexp.MustCompile(`^(text|html)/template$`).MatchString(to) && from != "github.com/spf13/cobra":
				t.Errorf("%s links %s, which %s imports", name, to, from)
			}
		}
		if imports < 1000 {
			t.Errorf("only %d imports in %s", imports, name)
		}
	}
}

// maxRequirements is the number of modules that the root module requires directly. Lower it when it
// can be lower. The doctor reads Terraform configurations with HCL's own parser: no other reads all
// of them. IAM's client creates the role for drills with FIS, and that of SNS a shared topic.
// CloudTrail's reads the event history. Spans need OTLP's messages and protobuf.
// That of Elastic Load Balancing reads whether an instance is still a target.
const maxRequirements = 32

func TestRootModuleRequiresFewModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(text)) {
		if aRequirement.MatchString(line) && !strings.Contains(line, "// indirect") {
			direct++
		}
	}
	if direct != maxRequirements {
		t.Errorf("go.mod requires %d modules directly, and the limit is %d", direct, maxRequirements)
	}
}

var aRequirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)`)

// Both modules then compile the same packages, once.
func TestModulesRequireTheSameVersions(t *testing.T) {
	t.Parallel()
	required := func(dir string) map[string]string {
		text, err := os.ReadFile(filepath.Join(root(t), dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, m := range aRequirement.FindAllStringSubmatch(string(text), -1) {
			versions[m[1]] = m[2]
		}
		return versions
	}
	of, shared := required("."), 0
	for path, version := range required("sandbox") {
		if of[path] == "" {
			continue
		}
		shared++
		if of[path] != version {
			t.Errorf("%s: %s in go.mod, %s in sandbox/go.mod", path, of[path], version)
		}
	}
	if shared < 50 {
		t.Errorf("only %d modules in both go.mod files", shared)
	}
}
