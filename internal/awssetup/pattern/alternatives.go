package pattern

import (
	"net/netip"
	"strconv"
	"strings"
)

const oneKey = "Only one key allowed in match expression"

// alternative reads one element of a leaf's array.
func (c *compiler) alternative(n *node) (test, error) {
	switch n.kind {
	case kindString:
		return exactString{want: n.text, ip: parseIP(n.text)}, nil
	case kindNumber:
		return exactNumber{n.text, n.number}, nil
	case kindBool, kindNull:
		return keyword{n.kind, n.text}, nil
	case kindObject:
		return c.expression(n)
	default:
		return nil, c.fail(n.at, "Match value must be String, number, true, false, or null")
	}
}

// expression reads a match object: exactly one operator.
func (c *compiler) expression(n *node) (test, error) {
	if len(n.members) == 0 {
		return nil, c.fail(n.end, "Match expression name not found")
	}
	op := n.members[0]
	t, err := c.operator(op)
	if err != nil {
		return nil, err
	}
	if len(n.members) > 1 {
		if op.key == "numeric" || op.key == "anything-but" {
			return nil, c.fail(n.members[1].at, "Too many elements in numeric expression")
		}
		return nil, c.fail(n.members[1].at, oneKey)
	}
	return t, nil
}

func (c *compiler) operator(op member) (test, error) {
	v := op.value
	switch op.key {
	case "exactly":
		return c.stringOperator(v, "exact match", func(s string) test { return exactString{want: s} })
	case "prefix", "suffix":
		return c.affix(op)
	case "equals-ignore-case":
		return c.stringOperator(v, "equals-ignore-case match", newEqualFold)
	case "wildcard":
		if v.kind != kindString {
			return nil, c.fail(v.at, "wildcard match pattern must be a string")
		}
		return c.wildcard(v)
	case "anything-but":
		return c.anythingBut(v)
	case "numeric":
		return c.numeric(v)
	case "exists":
		if v.kind != kindBool {
			return nil, c.fail(v.at, "exists match pattern must be either true or false.")
		}
		if v.text == "true" {
			return present{}, nil
		}
		return absent{}, nil
	case "cidr":
		return c.cidr(v)
	default:
		return nil, c.fail(op.at, "Unrecognized match type %s", op.key)
	}
}

func (c *compiler) stringOperator(v *node, what string, build func(string) test) (test, error) {
	if v.kind != kindString {
		return nil, c.fail(v.at, "%s pattern must be a string", what)
	}
	return build(v.text), nil
}

func newEqualFold(s string) test { return equalFold{text: s, want: foldCase(s)} }

// affix reads "prefix" and "suffix", whose value is a string or {"equals-ignore-case": string}.
func (c *compiler) affix(op member) (test, error) {
	v := op.value
	if v.kind != kindObject {
		return c.stringOperator(v, op.key+" match", func(s string) test {
			return affix{suffix: op.key == "suffix", text: s, want: s}
		})
	}
	name := strings.ToUpper(op.key[:1]) + op.key[1:]
	if len(v.members) == 0 {
		return nil, c.fail(v.end, "%s expression name not found", name)
	}
	inner := v.members[0]
	if inner.key != "equals-ignore-case" {
		return nil, c.fail(inner.at, "Unsupported %s pattern: %s", op.key, inner.key)
	}
	if len(v.members) > 1 {
		return nil, c.fail(v.members[1].at, oneKey)
	}
	return c.stringOperator(inner.value, "equals-ignore-case match", func(s string) test {
		return affix{suffix: op.key == "suffix", fold: true, text: s, want: foldCase(s)}
	})
}

// wildcard splits the text at its wildcards. Positions in its errors count bytes from the opening quotation mark, as
// in the reference engine.
func (c *compiler) wildcard(v *node) (test, error) {
	var literals []string
	var literal strings.Builder
	for i := 0; i < len(v.text); i++ {
		switch ch := v.text[i]; ch {
		case '*':
			if strings.HasPrefix(v.text[i+1:], "*") {
				return nil, c.fail(v.at, "Consecutive wildcard characters at pos %d", i+1)
			}
			literals = append(literals, literal.String())
			literal.Reset()
		case '\\':
			if i++; i == len(v.text) || v.text[i] != '*' && v.text[i] != '\\' {
				return nil, c.fail(v.at, "Invalid escape character at pos %d", i)
			}
			literal.WriteByte(v.text[i])
		default:
			literal.WriteByte(ch)
		}
	}
	if c.wildcards += len(literals); c.wildcards > maxWildcards {
		return nil, c.fail(v.at, tooComplex)
	}
	return wildcard{text: v.text, literals: append(literals, literal.String())}, nil
}

func (c *compiler) cidr(v *node) (test, error) {
	if v.kind != kindString {
		return nil, c.fail(v.at, "prefix match pattern must be a string") // sic: the reference engine says "prefix" here
	}
	address, mask, ok := strings.Cut(v.text, "/")
	if !ok || strings.Contains(mask, "/") {
		return nil, c.fail(v.at, "Malformed CIDR, one '/' required")
	}
	bits, err := strconv.Atoi(mask)
	switch {
	case err != nil:
		return nil, c.fail(v.at, "Malformed CIDR, mask bits must be an integer")
	case bits < 0:
		return nil, c.fail(v.at, "Malformed CIDR, mask bits must not be negative")
	}
	ip := parseIP(address)
	switch {
	case !ip.IsValid():
		return nil, c.fail(v.at, "Nonstandard IP address: %s", address)
	case ip.Is4() && bits > 31:
		return nil, c.fail(v.at, "IPv4 mask bits must be < 32")
	case bits > 127:
		return nil, c.fail(v.at, "IPv6 mask bits must be < 128")
	}
	return cidr{text: v.text, block: netip.PrefixFrom(ip, bits).Masked()}, nil
}

// numeric reads ["=",n], [op,n] or a lower bound followed by an upper bound.
func (c *compiler) numeric(v *node) (test, error) {
	if v.kind != kindArray {
		return nil, c.fail(v.at, "Value of numeric must be an array.")
	}
	if len(v.items) == 0 || v.items[0].kind != kindString {
		return nil, c.fail(v.end, "Invalid member in numeric match: %s", firstText(v))
	}
	t := numeric{text: `{"numeric":` + c.text(v) + `}`}
	op := v.items[0].text
	switch op {
	case "=", "<", "<=", ">", ">=":
	default:
		return nil, c.fail(v.items[0].at, "Unrecognized numeric range operator: %s", op)
	}
	if len(v.items) < 2 || v.items[1].kind != kindNumber {
		what := op
		if op == "=" {
			what = "equals"
		}
		return nil, c.fail(v.end, "Value of %s must be numeric", what)
	}
	if !exact(v.items[1]) {
		return nil, c.fail(v.items[1].at, inexact, v.items[1].text)
	}
	t.bound(op, v.items[1].number)
	if len(v.items) == 2 {
		return t, nil
	}
	if op[0] != '>' {
		return nil, c.fail(v.items[2].at, "Too many elements in numeric expression")
	}
	return c.upperBound(t, v)
}

func (c *compiler) upperBound(t numeric, v *node) (test, error) {
	op := v.items[2]
	if op.kind != kindString {
		return nil, c.fail(op.at, "Bad value in numeric range: %s", op)
	}
	if op.text != "<" && op.text != "<=" {
		return nil, c.fail(op.at, "Bad numeric range operator: %s", op.text)
	}
	if len(v.items) < 4 || v.items[3].kind != kindNumber {
		return nil, c.fail(v.end, "Value of %s must be numeric", op.text)
	}
	if len(v.items) > 4 {
		return nil, c.fail(v.items[4].at, "Too many terms in numeric range expression")
	}
	if !exact(v.items[3]) {
		return nil, c.fail(v.items[3].at, inexact, v.items[3].text)
	}
	if t.bound(op.text, v.items[3].number); t.low >= t.high {
		return nil, c.fail(v.items[3].at, "Bottom must be less than top")
	}
	return t, nil
}

const inexact = "%s has more digits than numeric can compare"

// exact reports whether a number has the same value as a float64. The reference engine refuses other numbers in
// numeric.
func exact(n *node) bool {
	digits, exponent, ok := decimal(n.text)
	same, at, _ := decimal(strconv.FormatFloat(n.number, 'e', -1, 64))
	return ok && finite(n.number) && digits == same && (exponent == at || digits == "")
}

// decimal returns the digits of a number without zeros at the ends, and its exponent.
func decimal(text string) (digits string, exponent int, ok bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	if power != "" {
		n, err := strconv.Atoi(power)
		if err != nil {
			return "", 0, false
		}
		exponent = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(all, "0")
	return digits, exponent - len(fraction) + len(all) - len(digits), true
}

func (t *numeric) bound(op string, value float64) {
	switch op {
	case "=":
		t.hasLow, t.low, t.hasHigh, t.high = true, value, true, value
	case ">", ">=":
		t.hasLow, t.low, t.openLow = true, value, op == ">"
	default:
		t.hasHigh, t.high, t.openTop = true, value, op == "<"
	}
}

func firstText(v *node) string {
	if len(v.items) == 0 {
		return "]"
	}
	return v.items[0].String()
}
