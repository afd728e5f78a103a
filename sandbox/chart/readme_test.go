package chart_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// updateReadme has a name of its own, because -update writes other files.
var updateReadme = flag.Bool("update-readme", false, "write the chart's README.md")

const readmeIntro = `# The chart of Lifeboat

Lifeboat moves pods off AWS nodes before their instances disappear. [Install Lifeboat](../../docs/guides/install.md)
explains the installation, and [Chart values beside Karpenter's](../../docs/guides/chart-values.md) compares the values
with those of Karpenter's chart.

` + "```sh" + `
helm install lifeboat lifeboat-VERSION.tgz --namespace lifeboat-system --create-namespace --values my-values.yaml --wait
helm test lifeboat --namespace lifeboat-system
` + "```" + `

The chart refuses names and values that are wrong, and says where they are. Two values are required:
` + "`image.repository` and `aws.queueURL`" + `. ` + "`examples/`" + ` has complete files.

## Values

This table is generated from ` + "`values.yaml`" + `: ` + "`go test -C sandbox ./chart -run Readme -update-readme`" + `.

| value | default | meaning |
|---|---|---|
`

// TestReadmeListsValues compares README.md with the comments in values.yaml.
func TestReadmeListsValues(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	schemaText, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(schemaText, &schema); err != nil {
		t.Fatal(err)
	}
	want := readmeIntro + strings.Join(valueRows(t, "", "", doc.Content[0], schema, schema), "")
	path := chartDir + "/README.md"
	if *updateReadme {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("README.md is stale: run the command that it names (-want +got):\n%s", diff)
	}
}

// valueRows returns a row for each value. A value whose fields the schema does not list is one row.
func valueRows(t *testing.T, path, section string, node *yaml.Node, schema, root map[string]any) (rows []string) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		comment := comment(key.HeadComment)
		sub, _ := properties[key.Value].(map[string]any)
		if ref, ok := sub["$ref"].(string); ok {
			sub, _ = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		if _, fields := sub["properties"]; fields && sub["additionalProperties"] == false && value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
			rows = append(rows, valueRows(t, name, comment, value, sub, root)...)
			continue
		}
		if comment == "" {
			comment = section
		}
		section = "" // it explains the first value of a section without a comment
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, defaultValue(t, value), strings.ReplaceAll(comment, "|", "\\|")))
	}
	return rows
}

// comment joins the lines of the last block of a comment.
func comment(head string) string {
	blocks := strings.Split(head, "\n\n")
	var words []string
	for line := range strings.Lines(blocks[len(blocks)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func defaultValue(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 60 {
		return "see values.yaml"
	}
	return "`" + strings.ReplaceAll(string(text), "|", "\\|") + "`"
}

// TestKarpenterTableNamesExistingValues checks the second column of the table, and that most
// values of Karpenter's chart have a row.
func TestKarpenterTableNamesExistingValues(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/chart-values.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := values(t, string(all))
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		rows++
		ours := strings.Trim(cells[2], " `")
		if ours == "–" {
			if strings.TrimSpace(cells[3]) == "" {
				t.Errorf("%s has no counterpart and no reason", cells[1])
			}
			continue
		}
		if _, found, err := unstructured.NestedFieldNoCopy(known, strings.Split(ours, ".")...); err != nil || !found {
			t.Errorf("%s: the chart has no value %s", cells[1], ours)
		}
	}
	if rows < 50 {
		t.Errorf("the table has %d rows, want at least 50", rows)
	}
}
