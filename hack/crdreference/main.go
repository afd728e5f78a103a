// Command crdreference writes docs/reference/api.md, the fields of Lifeboat's API, from the CRDs in
// charts/lifeboat/crds.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const page = "docs/reference/api.md"

func main() {
	text, err := reference(".")
	if err != nil {
		log.Fatalf("%v: run it in the root of the repository", err)
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}

// crd has the parts of a CustomResourceDefinition that the page shows.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind       string   `json:"kind"`
			Plural     string   `json:"plural"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Scope    string    `json:"scope"`
		Versions []version `json:"versions"`
	} `json:"spec"`
}

type version struct {
	Name       string `json:"name"`
	Deprecated bool   `json:"deprecated"`
	Schema     struct {
		OpenAPI schema `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// schema is the part of OpenAPI that controller-gen writes.
type schema struct {
	Type        string            `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Items       *schema           `json:"items"`
	Required    []string          `json:"required"`
	Enum        []any             `json:"enum"`
	Default     any               `json:"default"`
	Pattern     string            `json:"pattern"`
	MinLength   *int64            `json:"minLength"`
	MaxLength   *int64            `json:"maxLength"`
	MinItems    *int64            `json:"minItems"`
	MaxItems    *int64            `json:"maxItems"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	IntOrString bool              `json:"x-kubernetes-int-or-string"`
	Validations []struct {
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// reference returns the page for the CRDs below root.
func reference(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "charts/lifeboat/crds/*.yaml"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("there are no CRDs (%w)", err)
	}
	var b strings.Builder
	b.WriteString(`# Fields of the API

<!-- go run ./hack/crdreference writes this page from the CRDs in charts/lifeboat/crds. -->

All kinds are cluster-scoped. A field with ` + "`[]`" + ` belongs to each element of a list. *Required* means: if the object around
it is there. [Support and stability](../support.md#what-is-stable) says what may change.
`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var c crd
		if err := yaml.Unmarshal(text, &c); err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
		c.write(&b)
	}
	return b.String(), nil
}

func (c crd) write(b *strings.Builder) {
	at := slices.IndexFunc(c.Spec.Versions, func(v version) bool { return !v.Deprecated })
	v := c.Spec.Versions[max(at, 0)]
	fmt.Fprintf(b, "\n## %s\n\n`%s/%s`, `kubectl get %s`", c.Spec.Names.Kind, c.Spec.Group, v.Name, c.Spec.Names.Plural)
	for _, short := range c.Spec.Names.ShortNames {
		fmt.Fprintf(b, " or `%s`", short)
	}
	fmt.Fprintf(b, "\n\n%s\n", v.Schema.OpenAPI.Description)
	for _, part := range []string{"spec", "status"} {
		s, ok := v.Schema.OpenAPI.Properties[part]
		if !ok {
			continue
		}
		fmt.Fprintf(b, "\n### %s: %s\n\n", c.Spec.Names.Kind, part)
		if rules := s.rules(); rules != "" {
			fmt.Fprintf(b, "Rules for all of it: %s\n\n", rules)
		}
		b.WriteString("| field | type | limits | meaning |\n|---|---|---|---|\n")
		s.fields(b, "")
	}
}

// fields writes a row for each field below s, with its path.
func (s schema) fields(b *strings.Builder, path string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[name]
		limits := f.limits()
		if slices.Contains(s.Required, name) {
			limits = slices.Insert(limits, 0, "required")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path+name, f.kind(), strings.Join(limits, "; "), cell(f.Description+" "+f.rules()))
		inner, at := f, path+name
		for inner.Items != nil {
			inner, at = *inner.Items, at+"[]"
		}
		inner.fields(b, at+".")
	}
}

// kind is the type as a reader of YAML writes it.
func (s schema) kind() string {
	switch {
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Format == "date-time":
		return "time"
	case s.Type == "object" && len(s.Additional) > 0:
		return "map"
	case s.IntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

func (s schema) limits() (all []string) {
	if s.Default != nil {
		text, _ := json.Marshal(s.Default) // it was read from JSON
		all = append(all, "default `"+string(text)+"`")
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		all = append(all, "one of "+strings.Join(values, ", "))
	}
	if s.Pattern != "" {
		all = append(all, "pattern `"+strings.ReplaceAll(s.Pattern, "|", `\|`)+"`")
	}
	for _, limit := range []struct {
		value *int64
		text  string
	}{
		{s.MinLength, "at least %d characters"}, {s.MaxLength, "at most %d characters"},
		{s.MinItems, "at least %d elements"}, {s.MaxItems, "at most %d elements"},
	} {
		if limit.value != nil {
			all = append(all, fmt.Sprintf(limit.text, *limit.value))
		}
	}
	if s.Minimum != nil {
		all = append(all, fmt.Sprintf("at least %v", *s.Minimum))
	}
	if s.Maximum != nil {
		all = append(all, fmt.Sprintf("at most %v", *s.Maximum))
	}
	return all
}

// rules are the messages of the validations, as sentences.
func (s schema) rules() string {
	var all []string
	for _, v := range s.Validations {
		if v.Message != "" { // otherwise an expression computes it
			all = append(all, strings.TrimSuffix(v.Message, ".")+".")
		}
	}
	return cell(strings.Join(all, " "))
}

// cell is text as a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
