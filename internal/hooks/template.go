package hooks

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"
)

// A body is written in Go's template language and parsed by
// text/template/parse. It is not executed by text/template, which looks methods
// up by name: the linker would then keep every method, and lifeboatd would grow
// by half. Loops, definitions and variables are left out. A request body does
// not need them, and without them the run time is bounded by the template's
// length.

// fields are values by name.
type fields map[string]any

// MarshalJSON writes the fields with the key names of the default body.
func (f fields) MarshalJSON() ([]byte, error) {
	lower := map[string]any{}
	for name, v := range f {
		if name == "UID" {
			name = "uid"
		}
		lower[strings.ToLower(name[:1])+name[1:]] = v
	}
	return marshal(lower)
}

// body is a parsed template.
type body struct{ root *parse.ListNode }

// parseBody parses a template.
func parseBody(text string) (*body, error) {
	if len(text) > MaxBody {
		return nil, fmt.Errorf("the template is longer than %d bytes", MaxBody)
	}
	known := map[string]any{}
	for name := range functions() {
		known[name] = true
	}
	trees := map[string]*parse.Tree{}
	tree, err := parse.New("body").Parse(text, "", "", trees, known)
	if err != nil {
		return nil, fmt.Errorf("parsing the template: %w", err)
	}
	if len(trees) > 1 {
		return nil, errUnsupportedSyntax
	}
	if err := check(tree.Root); err != nil {
		return nil, err
	}
	return &body{root: tree.Root}, nil
}

var errUnsupportedSyntax = errors.New("the template uses range, template, block, define or a variable: use only fields, functions, if and with")

// check rejects syntax that execute does not support.
func check(node parse.Node) error {
	switch n := node.(type) {
	case nil, *parse.TextNode, *parse.CommentNode:
		return nil
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := check(child); err != nil {
				return err
			}
		}
		return nil
	case *parse.ActionNode:
		return declares(n.Pipe)
	case *parse.IfNode:
		return errors.Join(declares(n.Pipe), check(n.List), check(n.ElseList))
	case *parse.WithNode:
		return errors.Join(declares(n.Pipe), check(n.List), check(n.ElseList))
	}
	return errUnsupportedSyntax
}

func declares(pipe *parse.PipeNode) error {
	if len(pipe.Decl) > 0 {
		return errUnsupportedSyntax
	}
	return nil
}

// run is the execution of a template.
type run struct {
	out       strings.Builder
	size      int // of out, in bytes; each secret counts as maxSecret
	json      jsonState
	functions map[string]function
}

// execute renders the template for a value.
func (b *body) execute(dot any) (string, error) {
	r := &run{functions: functions()}
	if err := r.list(b.root, dot); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

func (r *run) list(list *parse.ListNode, dot any) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := r.node(node, dot); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(node parse.Node, dot any) error {
	switch n := node.(type) {
	case *parse.TextNode:
		return r.write(string(n.Text))
	case *parse.ActionNode:
		v, err := r.pipe(n.Pipe, dot)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		if _, is := v.(fields); is {
			return fmt.Errorf("line %d: %s is not a single value: use one of its fields, or put json before it", n.Line, n.Pipe)
		}
		if value, is := v.(secret); is {
			return r.writeSecret(string(value))
		}
		return r.write(r.text(v))
	case *parse.IfNode:
		return r.branch(&n.BranchNode, dot, func(any) any { return dot })
	case *parse.WithNode:
		return r.branch(&n.BranchNode, dot, func(v any) any { return v })
	}
	return nil // a comment
}

// branch runs one of two lists; inner gives the dot of the first.
func (r *run) branch(n *parse.BranchNode, dot any, inner func(any) any) error {
	v, err := r.pipe(n.Pipe, dot)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	if err := rejectSecrets(v); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	if isTrue(v) {
		return r.list(n.List, inner(v))
	}
	return r.list(n.ElseList, dot)
}

// text returns a value as the body shows it. Inside of a JSON string it is escaped, so that
// it cannot end the string.
func (r *run) text(v any) string {
	text := fmt.Sprint(v)
	if _, is := v.(verbatim); !is && r.json.inString {
		return quoted(text)
	}
	return text
}

func (r *run) write(text string) error {
	if r.size += len(text); r.size > MaxBody {
		return errTooLong
	}
	r.out.WriteString(text)
	r.json.next(text)
	return nil
}

// writeSecret writes a secret. Neither the size nor what follows depends on its content, so that
// no error does.
func (r *run) writeSecret(value string) error {
	if r.size += maxSecret; r.size > MaxBody {
		return errTooLong
	}
	r.out.WriteString(r.text(value))
	r.json.begun, r.json.backslash = true, false
	return nil
}

// pipe evaluates a pipeline: each command gets the previous result as its last
// argument.
func (r *run) pipe(pipe *parse.PipeNode, dot any) (any, error) {
	var piped []any
	for _, command := range pipe.Cmds {
		v, err := r.command(command, dot, piped)
		if err != nil {
			return nil, err
		}
		piped = []any{v}
	}
	return piped[0], nil // the parser takes no empty pipeline
}

func (r *run) command(c *parse.CommandNode, dot any, piped []any) (any, error) {
	name, calls := c.Args[0].(*parse.IdentifierNode)
	if !calls {
		if len(c.Args) > 1 || len(piped) > 0 {
			return nil, fmt.Errorf("%s is not a function", c.Args[0])
		}
		return r.value(c.Args[0], dot)
	}
	var args []any
	for _, node := range c.Args[1:] {
		v, err := r.value(node, dot)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	args = append(args, piped...)
	if err := rejectSecrets(args...); err != nil {
		return nil, err
	}
	return r.functions[name.Ident](args) // the parser accepts only known names
}

func (r *run) value(node parse.Node, dot any) (any, error) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return field(dot, n.Ident)
	case *parse.StringNode:
		return n.Text, nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.NumberNode:
		if n.IsInt {
			return n.Int64, nil
		}
		return n.Float64, nil
	case *parse.PipeNode:
		if err := declares(n); err != nil {
			return nil, err
		}
		return r.pipe(n, dot)
	case *parse.IdentifierNode:
		return r.functions[n.Ident](nil)
	}
	return nil, fmt.Errorf("%s is not allowed here", node)
}

// field resolves a chain of field names.
func field(dot any, names []string) (any, error) {
	for _, name := range names {
		in, ok := dot.(fields)
		if !ok {
			return nil, fmt.Errorf("a single value has no field %s", name)
		}
		if dot, ok = in[name]; !ok {
			return nil, fmt.Errorf("there is no field %s: there are Node, InstanceID, Kind, Policy, Phase, Reason, Message, Deadline, Drill, Pods, Text, Interruption and UID, in Pods Total, Moved, Leaving, Waiting and Lost, and in Values the names of valuesFrom", name)
		}
	}
	return dot, nil
}
