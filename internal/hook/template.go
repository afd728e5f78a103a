package hook

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"
)

// A body is written in Go's template language (text/template), parsed by its own
// parser. It is not run by text/template: that looks methods up by their names,
// for which the linker would keep every method of everything in the program,
// and lifeboatd would be half as large again. What is left out here, loops,
// definitions and variables, no body of a request needs, and without them a
// template does no more than it is long.

// fields are values by their names.
type fields map[string]any

// MarshalJSON writes them as the default body does.
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

// body is a template that was read.
type body struct{ root *parse.ListNode }

// parseBody reads a template.
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
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	if len(trees) > 1 {
		return nil, errNotTaken
	}
	if err := check(tree.Root); err != nil {
		return nil, err
	}
	return &body{root: tree.Root}, nil
}

var errNotTaken = errors.New("the template has range, template, block, define or a variable in it: write fields, functions, if and with")

// check refuses what is not run here.
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
	return errNotTaken
}

func declares(pipe *parse.PipeNode) error {
	if len(pipe.Decl) > 0 {
		return errNotTaken
	}
	return nil
}

// run is a template that is being run.
type run struct {
	out       strings.Builder
	functions map[string]function
}

// execute writes what the template makes of a value.
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
			return fmt.Errorf("line %d: %s is not one value: name a field of it, or write json before it", n.Line, n.Pipe)
		}
		return r.write(fmt.Sprint(v))
	case *parse.IfNode:
		return r.branch(&n.BranchNode, dot, func(any) any { return dot })
	case *parse.WithNode:
		return r.branch(&n.BranchNode, dot, func(v any) any { return v })
	}
	return nil // a comment
}

// branch runs one of two lists; inner is what the dot is in the first.
func (r *run) branch(n *parse.BranchNode, dot any, inner func(any) any) error {
	v, err := r.pipe(n.Pipe, dot)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	if isTrue(v) {
		return r.list(n.List, inner(v))
	}
	return r.list(n.ElseList, dot)
}

func (r *run) write(text string) error {
	if r.out.Len()+len(text) > MaxBody {
		return errTooLong
	}
	r.out.WriteString(text)
	return nil
}

// pipe is the value of a pipeline: each command gets what the one before it made
// as its last argument.
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
			return nil, fmt.Errorf("%s is no function", c.Args[0])
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
	return r.functions[name.Ident](append(args, piped...)) // the parser knows the names
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
	return nil, fmt.Errorf("%s cannot be written here", node)
}

// field looks names up, one in the other.
func field(dot any, names []string) (any, error) {
	for _, name := range names {
		in, ok := dot.(fields)
		if !ok {
			return nil, fmt.Errorf("there is no field %s in a single value", name)
		}
		if dot, ok = in[name]; !ok {
			return nil, fmt.Errorf("there is no field %s: there are Node, InstanceID, Kind, Policy, Phase, Reason, Message, Deadline, Drill, Pods, Text, Interruption and UID, and in Pods Total, Moved, Leaving, Waiting and Lost", name)
		}
	}
	return dot, nil
}
