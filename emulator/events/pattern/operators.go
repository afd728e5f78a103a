package pattern

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
)

// test reports whether a scalar of an event satisfies an alternative. The scalar is a string,
// json.Number, bool or nil.
type test func(scalar any) bool

// onStrings is a test that no other type satisfies.
func onStrings(holds func(string) bool) test {
	return func(v any) bool {
		s, ok := v.(string)
		return ok && holds(s)
	}
}

func anyOf(tests []test) test {
	return func(v any) bool {
		for _, holds := range tests {
			if holds(v) {
				return true
			}
		}
		return false
	}
}

// fold makes strings comparable that differ only in case.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// alternative compiles one item of a leaf.
func alternative(item any) (test, error) {
	switch item := item.(type) {
	case []any:
		return nil, refuse("Match value must be String, number, true, false, or null")
	case map[string]any:
		name, operand, err := only(item)
		if err != nil {
			return nil, err
		}
		return operator(name, operand)
	}
	return equal(item), nil
}

// only returns the member of an object that must have exactly one.
func only(object map[string]any) (name string, operand any, err error) {
	if len(object) != 1 {
		return "", nil, refuse("Only one key allowed in match expression")
	}
	for name, operand = range object {
	}
	return name, operand, nil
}

// equal compares numbers by value: 300 equals 3e2.
func equal(want any) test {
	number, isNumber := want.(json.Number)
	if !isNumber {
		return func(v any) bool { return v == want }
	}
	return func(v any) bool {
		got, ok := v.(json.Number)
		return ok && (got == number || value(got) == value(number))
	}
}

func value(n json.Number) float64 {
	f, _ := n.Float64() // beyond the range it is an infinity, which compares like a large number
	return f
}

func operator(name string, operand any) (test, error) {
	switch name {
	case "exists":
		if operand != true {
			return nil, refuse("exists match pattern must be either true or false.")
		}
		return func(any) bool { return true }, nil
	case "anything-but":
		return anythingBut(operand)
	case "numeric":
		return numeric(operand)
	case "exactly", "equals-ignore-case", "prefix", "suffix", "wildcard", "cidr":
		return onText(name, operand)
	}
	return nil, refuse("Unrecognized match type %s", name)
}

// onText compiles the operators on strings.
func onText(name string, operand any) (test, error) {
	if object, ok := operand.(map[string]any); ok && (name == "prefix" || name == "suffix") {
		inner, text, err := only(object)
		if err != nil || inner != "equals-ignore-case" {
			return nil, refuse("Unsupported %s pattern: %s", name, inner)
		}
		return affix(name, text, fold)
	}
	text, ok := operand.(string)
	if !ok {
		return nil, refuse("%s match pattern must be a string", name)
	}
	switch name {
	case "exactly":
		return equal(text), nil
	case "equals-ignore-case":
		return onStrings(func(s string) bool { return fold(s) == fold(text) }), nil
	case "wildcard":
		return wildcard(text)
	case "cidr":
		return cidr(text)
	}
	return affix(name, text, func(s string) string { return s })
}

// affix compiles prefix and suffix.
func affix(name string, operand any, normal func(string) string) (test, error) {
	text, ok := operand.(string)
	if !ok {
		return nil, refuse("%s match pattern must be a string", name)
	}
	has := strings.HasPrefix
	if name == "suffix" {
		has = strings.HasSuffix
	}
	return onStrings(func(s string) bool { return has(normal(s), normal(text)) }), nil
}

// escapes are the backslash with what follows it, runs of asterisks, and other text.
var escapes = regexp.MustCompile(`(?s)\\.?|\*+|[^\\*]+`)

// wildcard translates to a regular expression, which matches in linear time.
func wildcard(text string) (test, error) {
	expression := strings.Builder{}
	for _, part := range escapes.FindAllString(text, -1) {
		switch {
		case part == "*":
			expression.WriteString(".*")
		case part[0] == '*':
			return nil, refuse("Consecutive wildcard characters in %q", text)
		case part == `\*` || part == `\\`:
			expression.WriteString(part)
		case part[0] == '\\':
			return nil, refuse("Invalid escape character in %q", text)
		default:
			expression.WriteString(regexp.QuoteMeta(part))
		}
	}
	compiled, err := regexp.Compile(`(?s)\A` + expression.String() + `\z`)
	if err != nil {
		return nil, err
	}
	return onStrings(compiled.MatchString), nil
}

// cidr refuses a block of one address, as event-ruler does.
func cidr(text string) (test, error) {
	block, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, refuse("Malformed CIDR: %v", err)
	}
	if block.IsSingleIP() {
		return nil, refuse("mask bits must be < %d", block.Addr().BitLen())
	}
	return onStrings(func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && block.Contains(address)
	}), nil
}

// bounds are the comparisons of "numeric".
var bounds = map[string]func(got, want float64) bool{
	"=":  func(got, want float64) bool { return got == want },
	"<":  func(got, want float64) bool { return got < want },
	"<=": func(got, want float64) bool { return got <= want },
	">":  func(got, want float64) bool { return got > want },
	">=": func(got, want float64) bool { return got >= want },
}

// numeric compiles one comparison, or a lower bound and an upper bound.
func numeric(operand any) (test, error) {
	terms, ok := operand.([]any)
	if !ok || len(terms) != 2 && len(terms) != 4 {
		return nil, refuse("Value of numeric must be an array of one or two comparisons.")
	}
	var all []func(float64) bool
	var limits []float64
	directions := ""
	for i := 0; i < len(terms); i += 2 {
		name, _ := terms[i].(string)
		number, isNumber := terms[i+1].(json.Number)
		if bounds[name] == nil || !isNumber {
			return nil, refuse("Unrecognized numeric range: %v %v", terms[i], terms[i+1])
		}
		all = append(all, func(got float64) bool { return bounds[name](got, value(number)) })
		limits, directions = append(limits, value(number)), directions+name[:1]
	}
	if len(limits) == 2 && (directions != "><" || limits[0] >= limits[1]) {
		return nil, refuse("Bad numeric range: the lower bound comes first, and Bottom must be less than top")
	}
	return func(v any) bool {
		got, ok := v.(json.Number)
		for _, holds := range all {
			ok = ok && holds(value(got))
		}
		return ok
	}, nil
}

// anythingBut compiles the negation of a value, of values of one type, or of one operator on
// strings.
func anythingBut(operand any) (test, error) {
	name := ""
	if object, ok := operand.(map[string]any); ok {
		var err error
		if name, operand, err = only(object); err != nil {
			return nil, err
		}
	}
	list, isList := operand.([]any)
	if !isList {
		list = []any{operand}
	}
	var tests []test
	numbers := 0
	for _, item := range list {
		t, isNumber, err := excluded(name, item)
		if err != nil {
			return nil, err
		}
		if isNumber {
			numbers++
		}
		tests = append(tests, t)
	}
	if len(tests) == 0 || numbers != 0 && numbers != len(tests) {
		return nil, refuse("Inside anything but list, either all values are number or string, mixed type is not supported")
	}
	matches := anyOf(tests)
	return func(v any) bool { return !matches(v) }, nil
}

func excluded(name string, item any) (t test, isNumber bool, err error) {
	text, isText := item.(string)
	_, isNumber = item.(json.Number)
	switch {
	case name == "" && (isText || isNumber):
		return equal(item), isNumber, nil
	case name == "":
		return nil, false, refuse("Value of anything-but must be an array or single string/number value.")
	case name != "prefix" && name != "suffix" && name != "equals-ignore-case" && name != "wildcard":
		return nil, false, refuse("Unsupported anything-but pattern: %s", name)
	case text == "" && (name == "prefix" || name == "suffix"):
		return nil, false, refuse("Null prefix/suffix not allowed")
	case !isText:
		return nil, false, refuse("%s match pattern must be a string", name)
	}
	t, err = onText(name, text)
	return t, false, err
}
