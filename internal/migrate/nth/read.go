package nth

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/migrate"
)

// setting is one flag that is set, in any of the input formats.
type setting struct {
	value, file string
	line        int
	// secret and key are the Secret with the value; empty if value has it.
	secret, key string
	// labels are those of a node selector.
	labels map[string]string
}

// settings are by flag. The last of several values wins.
type settings map[string]setting

// on reports whether a flag is set to true.
func (s settings) on(flag string) bool { return strings.EqualFold(s[flag].value, "true") }

// off reports whether a flag is set to false.
func (s settings) off(flag string) bool { return strings.EqualFold(s[flag].value, "false") }

// read reads files. The error names the file that is not YAML, or has no setting of
// the handler.
func read(files []migrate.File) (settings, error) {
	all := settings{}
	for _, f := range files {
		before := len(all)
		decoder := yaml.NewDecoder(strings.NewReader(string(f.Data)))
		for {
			var document yaml.Node
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("reading %s: it is not valid YAML: %w", f.Name, err)
			}
			if len(document.Content) > 0 {
				all.document(f.Name, document.Content[0], 0)
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("reading %s: it contains no setting of AWS Node Termination Handler; use the values of its Helm chart, or its Deployment or DaemonSet", f.Name)
		}
	}
	return all, nil
}

// maxDepth limits the nesting of lists of objects.
const maxDepth = 8

// document reads a Kubernetes object, or the values of a chart.
func (s settings) document(file string, n *yaml.Node, depth int) {
	if n.Kind != yaml.MappingNode || depth > maxDepth {
		return
	}
	if field(n, "kind") == nil {
		s.values(file, n)
		return
	}
	for _, item := range items(field(n, "items")) {
		s.document(file, item, depth+1)
	}
	pod := field(field(field(n, "spec"), "template"), "spec")
	if text(field(n, "kind")) == "DaemonSet" {
		s.selector(file, "node-selector", field(pod, "nodeSelector"))
	}
	for _, c := range items(field(pod, "containers")) {
		for _, e := range items(field(c, "env")) {
			s.variable(file, e)
		}
		s.arguments(file, append(items(field(c, "command")), items(field(c, "args"))...))
	}
}

// values reads the values of the handler's chart. In a parent chart they are under
// the subchart's name.
func (s settings) values(file string, n *yaml.Node) {
	if within := field(n, "aws-node-termination-handler"); within != nil {
		n = within
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if flag := flagOf(key.Value); slices.Contains(selectors(), flag) {
			s.selector(file, flag, value)
		}
		if value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null" && value.Value != "" {
			s.set(flagOf(key.Value), setting{value: value.Value, file: file, line: key.Line})
		}
	}
}

// variable reads an environment variable of a container.
func (s settings) variable(file string, e *yaml.Node) {
	flag := strings.ReplaceAll(strings.ToLower(text(field(e, "name"))), "_", "-")
	out := setting{value: text(field(e, "value")), file: file, line: e.Line}
	if ref := field(field(e, "valueFrom"), "secretKeyRef"); ref != nil {
		out.secret, out.key = text(field(ref, "name")), text(field(ref, "key"))
	}
	if out.value != "" || out.secret != "" {
		s.set(flag, out)
	}
}

// arguments reads the command line of a container.
func (s settings) arguments(file string, all []*yaml.Node) {
	for i, n := range all {
		name, ok := strings.CutPrefix(text(n), "--")
		if !ok {
			continue
		}
		flag, value, given := strings.Cut(name, "=")
		switch {
		case given:
		case i+1 < len(all) && !strings.HasPrefix(text(all[i+1]), "-"):
			value = text(all[i+1])
		default:
			value = "true"
		}
		s.set(flag, setting{value: value, file: file, line: n.Line})
	}
}

// set stores a setting if the handler has such a flag.
func (s settings) set(flag string, to setting) {
	if other, ok := aliases()[flag]; ok {
		flag = other
	}
	if _, known := findConversion(flag); known {
		s[flag] = to
	}
}

// aliases maps other names in variables and values to the flag's name.
func aliases() map[string]string {
	return map[string]string{
		"instance-metadata-url": "metadata-url", "namespace": "pod-namespace", "proc-uptime-file": "uptime-from-file",
		"check-asg-tag-before-draining": "check-tag-before-draining", "managed-asg-tag": "managed-tag",
		"grace-period": "pod-termination-grace-period",
	}
}

// flagOf returns the flag for a value of the chart: queue-url for queueURL.
func flagOf(value string) string {
	var b strings.Builder
	letters := []rune(value)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// field returns the value of a key of a mapping, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}
