// Package symbol compares texts that contain symbols: values that a template does not
// define, such as the account, a parameter or a generated name. The result of a
// comparison has three values, because a symbol can stand for many texts. The package
// is pure.
//
// A symbol is written in braces within a text. Two symbols with the same name stand
// for the same value.
package symbol

import (
	"regexp"
	"slices"
	"strings"
)

// Truth is a truth value with three values.
type Truth int

// The truth values, in the order of their certainty.
const (
	No Truth = iota
	Maybe
	Yes
)

// Of returns the truth value of a condition.
func Of(holds bool) Truth {
	if holds {
		return Yes
	}
	return No
}

// Not returns the opposite of t.
func (t Truth) Not() Truth { return Yes - t }

// Symbols of a template whose account or region is not known.
const (
	Account = "{account}"
	Region  = "{region}"
)

// Open returns the symbol of a value that a template does not define, such as a
// parameter without a default.
func Open(name string) string { return "{?" + clean.Replace(name) + "}" }

// Random returns the symbol of a random text that AWS generates, such as the end of
// the name of a CloudFormation resource. It consists of letters and digits.
func Random(name string) string { return "{~" + clean.Replace(name) + "}" }

// clean removes the characters that would end a symbol or split an ARN.
var clean = strings.NewReplacer(":", ".", "{", "", "}", "", `"`, "", `\`, "", "\n", " ")

// any matches one symbol.
var anySymbol = regexp.MustCompile(`\{(?:account|region|[?~][^{}"]*)\}`)

// Within reports whether a text contains a symbol.
func Within(text string) bool { return strings.Contains(text, "{") && anySymbol.MatchString(text) }

// Undefined returns the names of the symbols of [Open] in a text, without duplicates.
func Undefined(text string) []string {
	var names []string
	for _, s := range anySymbol.FindAllString(text, -1) {
		if name, ok := strings.CutPrefix(s, "{?"); ok && !slices.Contains(names, name[:len(name)-1]) {
			names = append(names, name[:len(name)-1])
		}
	}
	return names
}

// Map returns the text with its literal parts and its symbols changed.
func Map(text string, literal, one func(string) string) string {
	var out strings.Builder
	for {
		at := anySymbol.FindStringIndex(text)
		if at == nil {
			out.WriteString(literal(text))
			return out.String()
		}
		out.WriteString(literal(text[:at[0]]) + one(text[at[0]:at[1]]))
		text = text[at[1]:]
	}
}

// Supply says with which flags of lifeboat doctor a user supplies the values of the
// symbols in a text. It returns "" if there is no flag for them.
func Supply(text string) string {
	var flags []string
	if strings.Contains(text, Account) {
		flags = append(flags, "--account ACCOUNT")
	}
	if strings.Contains(text, Region) {
		flags = append(flags, "--region REGION")
	}
	for _, name := range Undefined(text) {
		if i := strings.LastIndex(name, "("); i >= 0 { // the result of a function
			name = strings.TrimRight(name[i+1:], ")")
		}
		if name = strings.TrimPrefix(name, "var."); name != "" && !strings.ContainsAny(name, ".[( ") || strings.HasPrefix(name, "AWS.") {
			flags = append(flags, "--parameter "+strings.Replace(name, "AWS.", "AWS::", 1)+"=VALUE")
		}
	}
	if len(flags) == 0 {
		return ""
	}
	return "add " + strings.Join(flags, " ")
}

// element is a symbol, or one byte of literal text.
type element struct {
	symbol  string
	literal byte
}

// split returns the elements of a text.
func split(text string) []element {
	all := make([]element, 0, len(text))
	for len(text) > 0 {
		if text[0] == '{' {
			if at := anySymbol.FindStringIndex(text); at != nil && at[0] == 0 {
				all = append(all, element{symbol: text[:at[1]]})
				text = text[at[1]:]
				continue
			}
		}
		all = append(all, element{literal: text[0]})
		text = text[1:]
	}
	return all
}

// possible reports whether the symbol can contain a character.
func (e element) possible(c byte) bool {
	digit := c >= '0' && c <= '9'
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	switch {
	case e.symbol == Account:
		return digit
	case e.symbol == Region:
		return digit || c == '-' || c >= 'a' && c <= 'z'
	case strings.HasPrefix(e.symbol, "{~"):
		return digit || letter
	}
	return true
}

// Equal compares two texts.
func Equal(a, b string) Truth {
	if a == b {
		return Yes
	}
	if !Within(a) && !Within(b) {
		return No
	}
	return Of(overlap(split(a), split(b), false)).maybe()
}

// maybe lowers a truth value to Maybe.
func (t Truth) maybe() Truth { return min(t, Maybe) }

// Glob matches a text with a pattern that can contain * (any characters) and ? (one
// character).
func Glob(pattern, text string) Truth {
	if !Within(pattern) && !Within(text) {
		return Of(globs(pattern, text))
	}
	p, t := split(pattern), split(text)
	if matches(p, t) {
		return Yes
	}
	return Of(overlap(p, t, true)).maybe()
}

// globs matches a text without symbols with a pattern without symbols.
func globs(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == text[t] || pattern[p] == '?'):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matches reports whether the pattern matches the text for all values of the symbols.
// Only * and the same symbol match a symbol of the text.
func matches(pattern, text []element) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p].literal == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == text[t] || pattern[p].literal == '?' && text[t].symbol == ""):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return !slices.ContainsFunc(pattern[p:], func(e element) bool { return e.literal != '*' })
}

// overlap reports whether some values of the symbols make the pattern match the text.
// It treats each symbol as independent of the others, so it can report an overlap
// where there is none. In a pattern, * and ? are wildcards.
func overlap(pattern, text []element, wildcards bool) bool { //nolint:gocyclo // one case for each pair of element types
	// reach[t] is true if the pattern so far matches the text before t. A symbol
	// stands for any number of the characters that it can contain.
	reach := make([]bool, len(text)+1)
	reach[0] = true
	skipSymbols(reach, text)
	for _, p := range pattern {
		next := make([]bool, len(text)+1)
		many := p.symbol != "" || wildcards && p.literal == '*'
		for t := range reach {
			if !reach[t] {
				continue
			}
			if many {
				next[t] = true
				for u := t; u < len(text) && (text[u].symbol != "" || p.symbol == "" || p.possible(text[u].literal)); u++ {
					next[u+1] = true
				}
				continue
			}
			if t == len(text) {
				continue
			}
			switch one := text[t]; {
			case one.symbol != "":
				if wildcards && p.literal == '?' || one.possible(p.literal) {
					next[t], next[t+1] = true, true
				}
			case one.literal == p.literal, wildcards && p.literal == '?':
				next[t+1] = true
			}
		}
		reach = next
		skipSymbols(reach, text)
	}
	return reach[len(text)]
}

// skipSymbols lets the symbols of the text be empty.
func skipSymbols(reach []bool, text []element) {
	for t := range text {
		if reach[t] && text[t].symbol != "" {
			reach[t+1] = true
		}
	}
}

// ARNLike matches ARNs part by part, so that * does not match a colon in the first
// five parts.
func ARNLike(pattern, text string) Truth {
	patterns, texts := strings.SplitN(pattern, ":", 6), strings.SplitN(text, ":", 6)
	short := func(parts []string, whole string) bool { return len(parts) != 6 && len(Undefined(whole)) == 0 }
	switch {
	case short(patterns, pattern) || short(texts, text):
		return No
	case len(patterns) != 6 || len(texts) != 6:
		return Glob(pattern, text).maybe() // a symbol can contain colons
	}
	result := Yes
	for i := range patterns {
		result = min(result, Glob(patterns[i], texts[i]))
	}
	return result
}
