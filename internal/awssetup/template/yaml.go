package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"bytes"

	yaml "go.yaml.in/yaml/v3"
)

// Limits for YAML: aliases can turn a small text into a huge value.
const (
	maxYAMLValues = 200_000 // values
	maxYAMLDepth  = 100
)

var errTooLarge = errors.New("it is too large, or nested too deeply")

// decodeYAML reads YAML with CloudFormation's short forms: !Ref x becomes
// {"Ref": "x"}, !Sub x becomes {"Fn::Sub": "x"} and so on (CloudFormation User
// Guide, "Intrinsic function reference").
func decodeYAML(data []byte) ([]any, error) {
	var documents []any
	d := yaml.NewDecoder(bytes.NewReader(data))
	c := &yamlReader{}
	for {
		var root yaml.Node
		err := d.Decode(&root)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is neither JSON nor YAML: %w", err)
		}
		v, err := c.value(&root, 0)
		if err != nil {
			return nil, err
		}
		if v != nil {
			documents = append(documents, v)
		}
	}
}

// yamlReader counts the values that it has read.
type yamlReader struct{ read int }

func (c *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if c.read++; c.read > maxYAMLValues || depth > maxYAMLDepth {
		return nil, errTooLarge
	}
	v, err := c.plain(n, depth)
	if err != nil || !strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!") {
		return v, err
	}
	switch name := n.Tag[1:]; name {
	case "Ref", "Condition":
		return map[string]any{name: v}, nil
	case "GetAtt":
		if text, ok := v.(string); ok {
			resource, attribute, _ := strings.Cut(text, ".")
			v = []any{resource, attribute}
		}
		return map[string]any{"Fn::GetAtt": v}, nil
	default:
		return map[string]any{"Fn::" + name: v}, nil
	}
}

// plain reads a node without its tag.
func (c *yamlReader) plain(n *yaml.Node, depth int) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return c.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			v, err := c.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return scalar(n), nil
}

func (c *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	all := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := c.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if inner, ok := v.(map[string]any); ok && n.Content[i].Tag == "!!merge" {
			for key, value := range inner {
				if _, there := all[key]; !there {
					all[key] = value
				}
			}
			continue
		}
		all[n.Content[i].Value] = v
	}
	return all, nil
}

// scalar converts booleans, null and numbers. Everything else stays text: YAML would
// read a policy's Version as a date.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true") || strings.EqualFold(n.Value, "yes") || strings.EqualFold(n.Value, "on")
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
	}
	return n.Value
}
