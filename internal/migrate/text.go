package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// document is one YAML document of a file.
type document struct {
	file string
	nth  int // among all documents of all files
	// first is its first line in the file, from 1.
	first int
	// text is the original document, with the --- before it.
	text string
	// root is its content; nil if it is empty.
	root *yaml.Node
	// changed means that root differs from text.
	changed bool
}

// place names a line, for example "in a.yaml, line 3".
func (d *document) place(line int) string {
	return fmt.Sprintf("in %s, line %d", d.file, line)
}

// SyntaxError is a YAML syntax error.
type SyntaxError struct {
	File string
	Line int // from 1
	// Problem is the parser's message.
	Problem string
	// Template means that the file looks like a template, not like YAML.
	Template bool
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("reading %s, line %d: %s", e.File, e.Line, e.Problem)
}

// separator begins a document (YAML 1.2.2, section 9.1). No other content can begin a
// line with it.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r\n]|$)`)

func startsDocument(text string) bool {
	where := separator.FindStringIndex(text)
	return where != nil && where[0] == 0
}

// parse splits a file into documents and reads each of them.
func parse(f File) ([]*document, error) {
	text, line := string(f.Data), 1
	var out []*document
	for begin := 0; begin < len(text); {
		end := begin + documentEnd(text[begin:])
		d := &document{file: f.Name, first: line, text: text[begin:end]}
		if err := d.read(); err != nil {
			err.Template = strings.Contains(text, "{{")
			return nil, err
		}
		out = append(out, d)
		line += strings.Count(d.text, "\n")
		begin = end
	}
	return out, nil
}

// directives matches the lines that can precede the --- of their document.
var directives = regexp.MustCompile(`^(?:[ \t]*(?:#.*)?\r?\n)*(?:%.*\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)+$`)

// documentEnd returns the end of the first document of a text: the next ---.
func documentEnd(text string) int {
	for _, where := range separator.FindAllStringIndex(text, 3) {
		if where[0] > 0 && !directives.MatchString(text[:where[0]]) {
			return where[0]
		}
	}
	return len(text)
}

var (
	errorLine = regexp.MustCompile(`line (\d+): `)
	yamlWord  = regexp.MustCompile(`^yaml: `)
)

// read decodes the text of a document.
func (d *document) read() *SyntaxError {
	decoder := yaml.NewDecoder(strings.NewReader(d.text))
	var root yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil // only comments
	case err != nil:
		return d.syntaxError(err)
	}
	var more yaml.Node
	if err := decoder.Decode(&more); err == nil {
		return &SyntaxError{File: d.file, Line: d.first + more.Line - 1, Problem: "a document begins here without a preceding ---"}
	} else if !errors.Is(err, io.EOF) {
		return d.syntaxError(err)
	}
	x := expander{}
	expanded, err := x.expand(&root, 0)
	if err != nil {
		e := &SyntaxError{File: d.file, Line: d.first, Problem: err.Error()}
		var bound *boundError
		if errors.As(err, &bound) {
			e.Line += bound.line - 1
		}
		return e
	}
	walk(expanded, func(n *yaml.Node) { n.Line += d.first - 1 })
	d.root = expanded
	return nil
}

func (d *document) syntaxError(err error) *SyntaxError {
	e := &SyntaxError{File: d.file, Line: d.first, Problem: yamlWord.ReplaceAllString(err.Error(), "")}
	if m := errorLine.FindStringSubmatchIndex(e.Problem); m != nil {
		if n, err := strconv.Atoi(e.Problem[m[2]:m[3]]); err == nil {
			e.Line = d.first + n - 1
			e.Problem = e.Problem[:m[0]] + e.Problem[m[1]:]
			if strings.HasPrefix(e.Problem, "did not find expected") {
				e.Line++ // for these errors the library counts from 0
			}
		}
	}
	return e
}

// objects returns the Kubernetes objects of a document: the document itself, or the
// items of a List.
func (d *document) objects() []*object {
	if d.root == nil || len(d.root.Content) == 0 || d.root.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	root := d.root.Content[0]
	if _, items := get(root, "items"); text(at(root, "kind")) == "List" && items != nil && items.Kind == yaml.SequenceNode {
		var out []*object
		for i, item := range items.Content {
			if item.Kind == yaml.MappingNode {
				out = append(out, d.object(item, fmt.Sprintf("items[%d]", i)))
			}
		}
		return out
	}
	return []*object{d.object(root, "")}
}

func (d *document) object(n *yaml.Node, within string) *object {
	o := &object{doc: d, node: n, pathPrefix: within, kind: text(at(n, "kind")), name: text(at(n, "metadata", "name"))}
	o.version = text(at(n, "apiVersion"))
	if group, version, ok := strings.Cut(o.version, "/"); ok {
		o.group, o.version = group, version
	}
	return o
}

// encode writes a changed document. It keeps the document's first line, comments, the
// order of fields, and the indentation of lists.
func (d *document) encode() (string, error) {
	head := ""
	if startsDocument(d.text) {
		head = "---\n"
		line, _, _ := strings.Cut(d.text, "\n")
		if after := strings.TrimSpace(line[3:]); strings.HasPrefix(after, "#") {
			head = "--- " + after + "\n"
			withoutComment(d.root, after)
		}
	}
	if root := d.root.Content[0]; root.Style&yaml.FlowStyle != 0 {
		walk(root, func(n *yaml.Node) { n.Style &^= yaml.FlowStyle }) // the input was JSON
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if usesCompactLists(d.root) {
		e.CompactSeqIndent()
	}
	if err := errors.Join(e.Encode(d.root), e.Close()); err != nil {
		return "", fmt.Errorf("writing the document %s: %w", d.place(d.first), err)
	}
	return head + b.String(), nil
}

// withoutComment removes the comment that was on the line of the ---; the parser can
// attach it to any node.
func withoutComment(root *yaml.Node, comment string) {
	walk(root, func(n *yaml.Node) {
		if rest, ok := strings.CutPrefix(n.HeadComment, comment); ok {
			n.HeadComment = strings.TrimLeft(rest, "\n")
		}
	})
}

// usesCompactLists reports whether the first list of a document is not indented below
// its key.
func usesCompactLists(root *yaml.Node) bool {
	found, is := false, false
	walk(root, func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode || found {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if !found && value.Kind == yaml.SequenceNode && value.Style&yaml.FlowStyle == 0 && value.Line > key.Line {
				found, is = true, value.Column == key.Column
			}
		}
	})
	return is
}
