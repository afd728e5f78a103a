package testkit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lifeboat-dev/lifeboat"

// goPackage is the output of `go list -json` for a package.
type goPackage struct {
	ImportPath   string
	Dir          string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
}

// packages are the packages of the root module and of sandbox/.
func packages(t *testing.T) []goPackage {
	t.Helper()
	return append(packagesIn(t, root(t)), packagesIn(t, filepath.Join(root(t), "sandbox"))...)
}

func packagesIn(t *testing.T, dir string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages in %s: %v", dir, err)
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// floors are the layers of the architecture, the highest first. A package may import only from
// lower ones, so that data flows in one direction.
var floors = [][]string{
	{"cmd/", "hack/", "sandbox/cmd/", "sandbox/hack/", "sandbox/bench"},
	{"internal/app", "internal/cli", "sandbox/cli"},
	{"sandbox/history"},
	{"sandbox/scenario", "sandbox/observer", "sandbox/scrape"},
	{"sandbox/chaos"},
	{"sandbox"},
	{"sandbox/systemd"},
	{"sandbox/instances"},
	{"sandbox/machines"},
	{"sandbox/kwok", "sandbox/karpenter", "sandbox/controlplane", "sandbox/assets"},
	{"sandbox/process", "sandbox/link", "sandbox/netns", "sandbox/clusterdns", "sandbox/images", "sandbox/chart", "sandbox/scenarios"},
	{"sandbox/osthread"},
	{"internal/cli/command", "internal/cli/report", "internal/cli/bundle"},
	{"internal/cli/terminal"},
	{"internal/bootagent/boottest"},
	{"emulator/emulatortest"},
	{"emulator"},
	{"emulator/fis", "emulator/autoscaling", "emulator/imds", "emulator/health"},
	{"emulator/ec2", "emulator/cloudtrail"},
	{"emulator/events", "emulator/sns"},
	{"emulator/sqs", "emulator/sts", "emulator/iam", "emulator/ssm", "emulator/eks", "emulator/elb", "emulator/pricing"},
	{"emulator/wire", "emulator/timer", "emulator/replica", "emulator/events/pattern"},
	{"emulator/policy"},
	{"internal/controller/"},
	{"internal/controller/interruption/capacity"},
	{"internal/controller/interruption/status", "internal/controller/interruption/evict", "internal/controller/interruption/concurrency"},
	{"internal/console"},
	{"internal/console/view", "internal/tracing", "internal/tracing/otlp"},
	{"internal/doctor", "internal/awssetup/emit", "internal/asg/membership"},
	{"internal/intake/sqs", "internal/intake/imds", "internal/intake/nodenotice", "internal/intake/ec2", "internal/intake/autoscaling", "internal/intake/cloudtrail", "internal/bootagent", "internal/drill", "internal/awssetup/probe", "internal/awssetup/iam"},
	{"internal/asg/groupcache"},
	{"internal/intake/poll/polltest"},
	{"internal/intake/poll"},
	{"internal/intake", "internal/kube/mutate", "internal/hooks/runner", "internal/cloud/aws", "internal/kube/podcache", "internal/kube/budgetcache", "internal/kube/ownercache", "internal/kube/nodeclaims", "internal/kube/nodeindex", "internal/awssetup", "internal/drain/simulate", "internal/record"},
	{"internal/replacement"},
	{"internal/policy", "internal/drain", "internal/doctor/workloads", "internal/doctor/installed", "internal/migrate/nth", "internal/asg/nodegroup"},
	{"internal/awssetup/template"},
	{"internal/asg/lifecycle", "internal/corroborate", "internal/intake/apicall", "internal/awssetup/pattern", "internal/awssetup/snapshot", "internal/awssetup/queuepolicy", "internal/awssetup/template/tfconfig", "internal/kube/reflector", "internal/kube/events", "internal/kube/scrapeauth", "internal/migrate"},
	{"internal/notice", "internal/hooks", "internal/cloud", "internal/cloud/awsmetrics", "internal/deregistration"},
	{"internal/metric", "internal/kube/writes"},
	{"api/", "internal/adopt", "internal/version", "internal/text/levenshtein", "internal/cloud/awshttp", "internal/cloud/metadata", "internal/doctor/finding", "internal/awssetup/symbol", "charts/", "internal/testkit/model", "internal/testkit/conformance", "internal/testkit/program", "internal/testkit/need", "internal/testkit/timelimit", "internal/testkit/unkind", "internal/testkit/doccommands", "internal/sandboxstate", "internal/asg/ratelimit", "internal/sleep", "internal/kube/rejection"},
}

// floor returns the layer of a package, or -1; the longest match counts.
func floor(path string) int {
	path = strings.TrimPrefix(path, module+"/")
	best, length := -1, -1
	for i, names := range floors {
		for _, name := range names {
			inside := path == strings.TrimSuffix(name, "/") || strings.HasPrefix(path, strings.TrimSuffix(name, "/")+"/")
			if inside && len(name) > length {
				best, length = i, len(name)
			}
		}
	}
	return best
}

func TestImportsFollowLayers(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasSuffix(p.ImportPath, "/testkit") || strings.Contains(p.ImportPath, "/e2e") {
			continue // for tests; they may import everything
		}
		from := floor(p.ImportPath)
		if from < 0 {
			t.Errorf("%s is in no layer: add it to one in the list above", p.ImportPath)
		}
		for _, i := range p.Imports {
			if !strings.HasPrefix(i, module+"/") {
				continue
			}
			if to := floor(i); to <= from {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, i)
			}
		}
	}
}

// rules are forbidden imports, with the reason.
var rules = []struct {
	packages, forbidden, except string
	reason                      string
}{
	{
		packages:  `^internal/(notice|hook|policy|drain|replacement|corroborate|adopt|finding|migrate|migrate/nth|asg/lifecycle|console/view|tracing)$|^internal/awssetup/(pattern|queuepolicy|snapshot|template)$`,
		forbidden: `^(net/http|os|os/exec|log|log/slog|context)$|^k8s\.io/client-go|^sigs\.k8s\.io/controller-runtime|aws-sdk-go|prometheus`,
		reason:    "decisions are pure: facts and time are their input",
	},
	{
		packages:  `^internal/(intake|policy|drain|notice|hook|action|hookrunner|cloud|controller|record|podwatch|ownerwatch|nodeindex|app)|^cmd/lifeboatd`,
		forbidden: `^(text|html)/template$`,
		reason:    "it finds methods by name, so the linker would keep all of them: half as much again of lifeboatd",
	},
	{
		packages:  `^api/`,
		forbidden: `.`, except: `^k8s\.io/(apimachinery|api)/`,
		reason: "others vendor the API alone",
	},
	{
		packages:  `^(internal/(controller|action|hookrunner|hook|podwatch|ownerwatch|claimwatch|listwatch|nodeindex|notice|policy|drain|replacement)|internal/cloud$|api)`,
		forbidden: `aws-sdk-go`,
		reason:    "the core is independent of the cloud",
	},
	{
		packages:  `^internal/(intake|policy|drain|notice|hook|action|hookrunner|cloud|controller|podwatch|ownerwatch|listwatch|nodeindex|app)|^cmd/lifeboatd`,
		forbidden: `lifeboat/(emulator|sandbox|internal/(sandboxstate|cli|testkit))(/|$)`,
		reason:    "programs for clusters contain nothing of the sandbox",
	},
	{
		packages:  `^(api|charts|cmd|emulator|hack|internal)(/|$)`,
		forbidden: `lifeboat/sandbox(/|$)|^helm\.sh/|^github\.com/vishvananda/`,
		reason:    "the sandbox is a module of its own, so that the root module does not require what it needs",
	},
	{
		packages:  `^internal/intake(/|$)`,
		forbidden: `lifeboat/internal/controller(/|$)`,
		reason:    "intake and controllers share the Interruption object and nothing else",
	},
	{
		packages:  `^internal/controller(/|$)`,
		forbidden: `lifeboat/internal/intake(/|$)`,
		reason:    "intake and controllers share the Interruption object and nothing else",
	},
	{
		packages:  `.`,
		forbidden: `^(github\.com/(stretchr/testify|onsi/.*)|k8s\.io/kubectl.*|k8s\.io/kubernetes.*)$`,
		reason:    "tests use testing and go-cmp; drains are planned here; the control plane is a process",
	},
}

func TestForbiddenImports(t *testing.T) {
	all := packages(t)
	for _, rule := range rules {
		matched := 0
		for _, p := range all {
			if !regexp.MustCompile(rule.packages).MatchString(strings.TrimPrefix(p.ImportPath, module+"/")) {
				continue
			}
			matched++
			for _, i := range p.Imports {
				excepted := rule.except != "" && regexp.MustCompile(rule.except).MatchString(i)
				if regexp.MustCompile(rule.forbidden).MatchString(i) && !excepted {
					t.Errorf("%s imports %s: %s", p.ImportPath, i, rule.reason)
				}
			}
		}
		if matched == 0 {
			t.Errorf("the rule %q applies to no package", rule.reason)
		}
	}
}

// importsOfEmulator are the packages of the product that emulator/ may import, with the reason. The
// emulator judges the product, so it has engines of its own: with a shared engine, both would make
// the same mistake, and no test would fail.
var importsOfEmulator = map[string]string{
	"internal/sleep":               "a wait that can be cut short",
	"internal/cloud/awshttp":       "clients of tests, with the fix that the product has",
	"internal/testkit/need":        "tests only",
	"internal/testkit/conformance": "tests only: cases, and no engine",
}

func TestEmulatorHasItsOwnEngines(t *testing.T) {
	for _, p := range packagesIn(t, root(t)) {
		if !strings.HasPrefix(p.ImportPath, module+"/emulator") {
			continue
		}
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			i, ours := strings.CutPrefix(i, module+"/")
			if !ours || strings.HasPrefix(i, "emulator/") || i == "emulator" {
				continue
			}
			if importsOfEmulator[i] == "" {
				t.Errorf("%s imports %s: the emulator may share no engine with the product that it tests", p.ImportPath, i)
			}
		}
	}
}

func TestOnlyTestsImportTestkit(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, module+"/internal/testkit") && !strings.Contains(p.ImportPath, "/e2e") {
			t.Errorf("%s imports testkit outside of its tests", p.ImportPath)
		}
	}
}

func TestEveryPackageHasDoc(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func TestRootModuleReplacesNothing(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^\s*replace\b`).Match(text) {
		t.Error("go.mod has a replace: `go install` of the commands would fail for users")
	}
}

func TestNoInitFunctions(t *testing.T) {
	pattern := regexp.MustCompile(`(?m)^func init\(\)`)
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if pattern.Match(text) {
				t.Errorf("%s/%s has an init function: list things explicitly", p.ImportPath, name)
			}
		}
	}
}
