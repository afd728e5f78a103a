package report_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/report"
)

// sarifObject is an object of SARIF 2.1.0: its required and its other written properties. The
// schema allows no other properties (sections 3.13 to 3.52 of the specification).
type sarifObject struct{ required, optional []string }

var sarifSchema = map[string]sarifObject{
	"":                       {[]string{"version", "runs"}, []string{"$schema"}},
	"runs":                   {[]string{"tool"}, []string{"results"}},
	"runs.tool":              {[]string{"driver"}, nil},
	"runs.tool.driver":       {[]string{"name"}, []string{"version", "informationUri", "rules"}},
	"runs.tool.driver.rules": {[]string{"id"}, []string{"helpUri"}},
	"runs.results":           {[]string{"message"}, []string{"ruleId", "ruleIndex", "level", "locations", "partialFingerprints"}},
	"runs.results.message":   {[]string{"text"}, nil},
	"runs.results.locations": {nil, []string{"physicalLocation", "logicalLocations"}},
	"runs.results.locations.physicalLocation":                  {[]string{"artifactLocation"}, nil},
	"runs.results.locations.physicalLocation.artifactLocation": {[]string{"uri"}, nil},
	"runs.results.locations.logicalLocations":                  {nil, []string{"fullyQualifiedName"}},
}

// sarifErrors returns what the schema does not allow. Arrays are not part of a path.
func sarifErrors(path string, value any) (wrong []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			wrong = append(wrong, sarifErrors(path, item)...)
		}
	case map[string]any:
		if path == "runs.results.partialFingerprints" {
			return nil // any properties
		}
		want := sarifSchema[path]
		for _, name := range want.required {
			if _, there := v[name]; !there {
				wrong = append(wrong, path+" lacks "+name)
			}
		}
		for name, inner := range v {
			if !slices.Contains(want.required, name) && !slices.Contains(want.optional, name) {
				wrong = append(wrong, path+" has "+name)
			}
			wrong = append(wrong, sarifErrors(strings.TrimPrefix(path+"."+name, "."), inner)...)
		}
	case string:
		name := path[strings.LastIndex(path, ".")+1:]
		if _, err := url.Parse(v); strings.HasSuffix(strings.ToLower(name), "uri") && (err != nil || strings.ContainsAny(v, " <>")) {
			wrong = append(wrong, fmt.Sprintf("%s is no URI: %q", path, v))
		}
		if name == "level" && !slices.Contains([]string{"none", "note", "warning", "error"}, v) {
			wrong = append(wrong, path+" is "+v)
		}
	}
	return wrong
}

func TestSARIFHasTheShapeOfItsSchema(t *testing.T) {
	for _, files := range [][]string{nil, {"infra/my stack.yaml", "a.yaml", "b.yaml"}, {"/tmp/a.yaml"}} {
		out, err := report.SARIF(all, "v1", files)
		var log any
		if err != nil || json.Unmarshal(out, &log) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if wrong := sarifErrors("", log); wrong != nil {
			t.Errorf("%q\n%s", wrong, out)
		}
	}
	wrong := sarifErrors("", map[string]any{"runs": []any{map[string]any{"tool": map[string]any{}, "result": 1}}})
	slices.Sort(wrong)
	if got := strings.Join(wrong, ", "); got != " lacks version, runs has result, runs.tool lacks driver" {
		t.Errorf("a log that is wrong: %s", got)
	}
}

// Each finding links to its anchor in a guide.
func TestSARIFLinksToAnchors(t *testing.T) {
	pages := map[string]string{}
	for _, name := range []string{"doctor.md", "node-groups.md"} {
		text, err := os.ReadFile("../../../docs/guides/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	ids := doctor.IDs()
	for part := range strings.SplitSeq(pages["node-groups.md"], `<a id="`) {
		if id, _, ok := strings.Cut(part, `"></a>`); ok {
			ids = append(ids, id)
		}
	}
	var findings []finding.Finding
	for _, id := range ids {
		findings = append(findings, finding.Finding{ID: id, Severity: finding.Info})
	}
	out, err := report.SARIF(findings, "", nil)
	if err != nil || len(ids) < 90 {
		t.Fatalf("%d findings: %v", len(ids), err)
	}
	links := 0
	for line := range strings.Lines(string(out)) {
		_, link, ok := strings.Cut(line, `"helpUri": "`)
		if !ok {
			continue
		}
		links++
		page, id, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(link), `"`), "#")
		if !strings.Contains(pages[page[strings.LastIndex(page, "/")+1:]], `<a id="`+id+`"></a>`) {
			t.Errorf("%s#%s does not exist", page, id)
		}
	}
	if links < 90 {
		t.Errorf("%d links", links)
	}
}

// A file whose name is a part of another's is not taken for it, and the URI has no spaces.
func TestSARIFNamesTheFile(t *testing.T) {
	f := []finding.Finding{{ID: "rule-disabled", Fix: "in infra/my stack.yaml, A: enable it"}}
	for want, files := range map[string][]string{
		"infra/my%20stack.yaml": {"a.yaml", "infra/my", "infra/my stack.yaml"},
		"a.yaml":                {"a.yaml", "b.yaml"},
		"file:///tmp/a.yaml":    {"/tmp/a.yaml"},
	} {
		out, err := report.SARIF(f, "", files)
		if err != nil || !strings.Contains(string(out), `"uri": "`+want+`"`) {
			t.Errorf("%s: %v\n%s", want, err, out)
		}
	}
}
