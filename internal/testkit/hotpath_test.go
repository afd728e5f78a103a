package testkit_test

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The path of one spot notice may have this many files and lines. Lower the limits when the path
// gets shorter, and never raise them.
const (
	maxPathFiles = 30
	maxPathLines = 5400
)

// packagesOffPath are packages that files of the path import, with the reason why a reader
// of the path need not open them.
var packagesOffPath = map[string]string{
	"internal/corroborate":    "compares nodes with instances: before what cannot be undone, or where several nodes state one instance",
	"internal/kube/writes":    "notes which writes the API server refuses",
	"internal/kube/rejection": "classifies errors of the API server: only for an eviction that was refused",
	"internal/sleep":          "a wait that can be cut short",
}

// filesOffPath are the other files of the packages of the path, with the reason why a
// reader of the path need not open them.
var filesOffPath = map[string]string{
	"internal/record/observe.go":                               "only with mode Observe",
	"internal/kube/mutate/disrupt.go":                          "only for pods that are deleted, and not evicted",
	"internal/policy/end.go":                                   "when the machine ends, over all notices: a minimum",
	"internal/controller/interruption/backoff.go":              "only where passes fail",
	"internal/controller/interruption/last_call.go":            "only where a step before the evictions fails or waits at a last call",
	"internal/controller/interruption/refusals.go":             "only where the API server refuses a write",
	"internal/controller/interruption/status/refused.go":       "only where the API server refuses a write",
	"internal/controller/interruption/corroborate.go":          "only before what cannot be undone, and for notices that the instance is gone",
	"internal/controller/interruption/departures.go":           "remembers when pods were first missed",
	"internal/controller/interruption/drill.go":                "only for drills",
	"internal/controller/interruption/evict/limits.go":         "returns at once while fewer than 200 requests are in flight",
	"internal/controller/interruption/expectations.go":         "remembers which versions this process replaced, and finds stale caches",
	"internal/controller/interruption/finished.go":             "after the path: forgets a finished record, and deletes it after its TTL",
	"internal/controller/interruption/options.go":              "the interfaces and options of the controller",
	"internal/controller/interruption/other_notices.go":        "only for several notices, planned changes, and nodes that are gone",
	"internal/controller/interruption/register_related.go":     "maps changes of policies, budgets, Jobs and replacements to Interruptions",
	"internal/controller/interruption/status/corroborated.go":  "only while facts about the instance do not agree",
	"internal/controller/interruption/status/endings.go":       "only where a drain ends other than by completion",
	"internal/controller/interruption/status/history.go":       "only where a reason to act has ended",
	"internal/controller/interruption/status/metrics.go":       "metrics, after the status is written",
	"internal/controller/interruption/status/metrics_table.go": "metrics",
	"internal/controller/interruption/status/paused.go":        "only while a pause stops the action",
	"internal/controller/interruption/steps_pause.go":          "only while a pause stops the action",
	"internal/controller/interruption/status/reasons.go":       "a table: which events are warnings, are about the node, or can wait",
	"internal/controller/interruption/status/revert.go":        "only for an eviction that failed after it was marked",
	"internal/controller/interruption/status/words.go":         "wording",
	"internal/drain/budget.go":                                 "reads a PodDisruptionBudget once per change, for the cache",
	"internal/drain/gang.go":                                   "only for pods that leave together, such as those of a PodGroup",
	"internal/drain/helpers.go":                                "lists pods that serve volumes to others",
	"internal/drain/returned.go":                               "only for pods that tolerate the cordon",
	"internal/drain/doc.go":                                    "the package comment",
	"internal/drain/late.go":                                   "only where the instance is gone, or an earlier grace outlasts the deadline",
	"internal/drain/stays.go":                                  "recognises pods that stay: of DaemonSets, static, finished",
	"internal/drain/words.go":                                  "wording of reasons",
	"internal/intake/drill.go":                                 "only for drills",
	"internal/intake/earlier.go":                               "only for state changes and group terminations",
	"internal/intake/explain.go":                               "logs notices that are not recorded",
	"internal/intake/intake.go":                                "types and options",
	"internal/intake/join.go":                                  "only where the record exists",
	"internal/intake/metrics.go":                               "metrics",
	"internal/intake/metrics_table.go":                         "metrics",
	"internal/policy/restriction.go":                           "only for the guard of Karpenter's NodeClaims",
	"internal/policy/requested.go":                             "only for the request of a person",
	"internal/record/blocked.go":                               "for metrics and `lifeboat status`",
	"internal/record/needs.go":                                 "for `lifeboat status` and the console",
	"internal/record/pods.go":                                  "for the console",
	"internal/record/progress.go":                              "for the CLI and the console",
	"internal/record/summary.go":                               "for metrics and `lifeboat status`",
	"internal/intake/probe.go":                                 "only for probes of lifeboat doctor",
	"internal/intake/report.go":                                "only for events that are not about an instance",
	"internal/intake/sqs/autoscaling.go":                       "decodes other kinds",
	"internal/intake/sqs/doc.go":                               "the package comment",
	"internal/intake/sqs/ec2.go":                               "decodes other kinds",
	"internal/intake/sqs/failures.go":                          "only for requests to SQS that fail",
	"internal/intake/sqs/groups.go":                            "only for messages that name a group of instances, or no instance",
	"internal/intake/sqs/health.go":                            "decodes other kinds",
	"internal/intake/sqs/options.go":                           "options and their defaults",
	"internal/intake/sqs/pending.go":                           "only for an instance that has no Node yet",
	"internal/intake/sqs/probe.go":                             "only for probes of lifeboat doctor",
	"internal/intake/sqs/queue.go":                             "the interface and the client of SQS",
	"internal/intake/sqs/reach.go":                             "only while the queue cannot be reached",
	"internal/intake/sqs/read.go":                              "for the CLI",
	"internal/intake/sqs/receivers.go":                         "counts the receivers, which grow only while batches are busy, and asks for fewer large messages",
	"internal/intake/sqs/redrive.go":                           "once, at the start",
	"internal/intake/sqs/semaphore.go":                         "returns at once while fewer than 64 writes are in flight",
	"internal/intake/sqs/unreadable.go":                        "only for messages that cannot be decoded",
	"internal/intake/sqs/variations.go":                        "only for messages wrapped by SNS, sent by Auto Scaling, or changed on the way",
	"internal/intake/sqs/visibility.go":                        "only for messages that are processed for seconds, or stay in the queue",
	"internal/intake/throttle.go":                              "throttles logs",
	"internal/kube/mutate/doc.go":                              "the package comment",
	"internal/kube/mutate/outofservice.go":                     "only for instances that are gone",
	"internal/kube/nodeindex/all.go":                           "for Auto Scaling groups and the polls",
	"internal/kube/nodeindex/unreachable.go":                   "for nodes that no notice can reach",
	"internal/kube/nodeindex/slim.go":                          "strips nodes before they are cached",
	"internal/kube/podcache/slim.go":                           "strips pods before they are cached",
	"internal/kube/podcache/stream.go":                         "does the work of client-go's Reflector for one node: lists, watches, retries",
	"internal/notice/join.go":                                  "only where the record exists",
	"internal/notice/kinds.go":                                 "constants",
	"internal/notice/metadata.go":                              "only for what agents write",
	"internal/notice/missing.go":                               "for the condition WiringDegraded",
	"internal/notice/withdrawn.go":                             "only for notices that are withdrawn",
	"internal/notice/words.go":                                 "wording",
	"internal/record/pause.go":                                 "only while a pause is in force",
	"internal/record/person.go":                                "only for approvals, holds and releases",
	"internal/policy/control_plane.go":                         "only for nodes of the control plane",
	"internal/policy/deferrable.go":                            "only while a pause is in force",
	"internal/policy/doc.go":                                   "the package comment",
	"internal/policy/guard.go":                                 "only where a policy is not valid",
	"internal/policy/passed_over.go":                           "only for several notices of which none has a firm deadline",
	"internal/policy/protected.go":                             "only for nodes with do-not-disrupt, and never for a hard deadline",
	"internal/policy/schedule.go":                              "soft deadlines, windows and lifecycle hooks: nothing of it applies to a hard deadline",
	"internal/policy/settings.go":                              "validates policies",
	"internal/policy/validate.go":                              "validates policies",
	"internal/policy/withdrawn.go":                             "only for notices that are withdrawn",
	"internal/policy/words.go":                                 "wording of decisions",
	"internal/record/slim.go":                                  "strips Interruptions before they are cached",
}

var (
	pathSection = regexp.MustCompile(`(?ms)^## The path of one spot notice$(.*?)^### What you can skip$(.*?)^## `)
	pathFile    = regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+)`: .")
	skipRow     = regexp.MustCompile(`(?m)^\| .+ \| (.+) \|$`)
	inCode      = regexp.MustCompile("`(internal/[^`]+)`")
	statedSize  = regexp.MustCompile(`\*\*([0-9]+) files\*\* with\s+\*\*at most ([0-9,]+) lines\*\*`)
)

// hotPath is what docs/tour.md says about the path of one spot notice.
type hotPath struct {
	files []string // in order
	skip  []string // files and packages
	// statedFiles and statedLines are the numbers in the text.
	statedFiles, statedLines int
}

func readHotPath(t *testing.T) hotPath {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := pathSection.FindSubmatch(text)
	if section == nil {
		t.Fatal("docs/tour.md has no section about the path of one spot notice")
	}
	var p hotPath
	for _, m := range pathFile.FindAllSubmatch(section[1], -1) {
		p.files = append(p.files, string(m[1]))
	}
	for _, row := range skipRow.FindAllSubmatch(section[2], -1) {
		for _, m := range inCode.FindAllSubmatch(row[1], -1) {
			p.skip = append(p.skip, string(m[1]))
		}
	}
	if size := statedSize.FindSubmatch(section[1]); size != nil {
		p.statedFiles, _ = strconv.Atoi(string(size[1]))
		p.statedLines, _ = strconv.Atoi(strings.ReplaceAll(string(size[2]), ",", ""))
	}
	if len(p.files) == 0 || len(p.skip) == 0 || p.statedLines == 0 {
		t.Fatalf("docs/tour.md: %d files on the path, %d to skip, %d lines stated", len(p.files), len(p.skip), p.statedLines)
	}
	return p
}

// knows reports whether the tour or this test says something about a file or a package.
func (p hotPath) knows(name string) bool {
	return slices.Contains(p.files, name) || slices.Contains(p.skip, name) || filesOffPath[name] != "" || packagesOffPath[name] != ""
}

// packages are the packages of the files on the path.
func (p hotPath) packages() []string {
	dirs := map[string]bool{}
	for _, f := range p.files {
		dirs[path.Dir(f)] = true
	}
	return slices.Sorted(maps.Keys(dirs))
}

// linesOf counts the lines of files of the repository. A file that is missing is an error.
func linesOf(t *testing.T, files []string) (lines int) {
	t.Helper()
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(f)))
		if err != nil {
			t.Errorf("docs/tour.md lists a file that cannot be read: %v", err)
		}
		lines += strings.Count(string(text), "\n")
	}
	return lines
}

func TestHotPathStaysShort(t *testing.T) {
	p := readHotPath(t)
	lines := linesOf(t, p.files)
	var skip []string
	for _, name := range p.skip {
		if strings.HasSuffix(name, ".go") {
			skip = append(skip, name)
		} else if info, err := os.Stat(filepath.Join(root(t), name)); err != nil || !info.IsDir() {
			t.Errorf("docs/tour.md says to skip %s, which is no package", name)
		}
	}
	t.Logf("the path of one spot notice: %d files, %d lines (limits %d and %d); with the files to skip in the same packages: %d files, %d lines",
		len(p.files), lines, maxPathFiles, maxPathLines, len(p.files)+len(skip), lines+linesOf(t, skip))
	if len(p.files) > maxPathFiles || lines > maxPathLines {
		t.Errorf("the path has %d files and %d lines, more than %d and %d: make it shorter", len(p.files), lines, maxPathFiles, maxPathLines)
	}
	if p.statedFiles != len(p.files) || lines > p.statedLines {
		t.Errorf("docs/tour.md says %d files and at most %d lines; there are %d and %d", p.statedFiles, p.statedLines, len(p.files), lines)
	}
	if all := append(slices.Clone(p.files), p.skip...); len(slices.Compact(slices.Sorted(slices.Values(all)))) < len(all) {
		t.Error("docs/tour.md lists a file twice")
	}
}

// TestHotPathIsComplete checks the list against the code. It checks every file of a package on the
// path, and every package that a file on the path imports. Each must be on the path, be skipped, or
// have a reason why it is off the path. It does not see packages that are reached
// through an interface, such as podwatch.
func TestHotPathIsComplete(t *testing.T) {
	p := readHotPath(t)
	there := map[string]bool{}
	for _, dir := range p.packages() {
		names, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file := path.Join(dir, filepath.Base(name))
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			there[file] = true
			if !p.knows(file) {
				t.Errorf("%s is in a package on the path: add it to docs/tour.md, or to filesOffPath with a reason", file)
			}
		}
	}
	for _, file := range p.files {
		for _, imported := range internalImports(t, file) {
			there[imported] = true
			if !slices.Contains(p.packages(), imported) && !p.knows(imported) {
				t.Errorf("%s imports %s: add its files to docs/tour.md, or the package to packagesOffPath with a reason", file, imported)
			}
		}
	}
	for _, reasons := range []map[string]string{filesOffPath, packagesOffPath} {
		for name := range reasons {
			if !there[name] || slices.Contains(p.files, name) || slices.Contains(p.skip, name) {
				t.Errorf("%s has a reason to be off the path, and is gone, not imported, or in docs/tour.md: remove the reason", name)
			}
		}
	}
}

// internalImports returns the packages of this module's internal directory that a file
// imports.
func internalImports(t *testing.T, file string) (imports []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(file)), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		if name, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok && strings.HasPrefix(name, "internal/") {
			imports = append(imports, name)
		}
	}
	return imports
}
