package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// like compiles text with * for any characters, and ? for one.
func like(text string) *regexp.Regexp {
	text = strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `.*`)
	return regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(text, `\?`, `.`) + `\z`)
}

// names compiles Action and Resource with their Not forms, of which a statement has one.
func names(element string, yes, no list[string], of func(Request) string, normal func(string) string) (func(Request) bool, error) {
	if (yes == nil) == (no == nil) {
		return nil, fmt.Errorf("it needs one of %s and Not%s", element, element)
	}
	var patterns []*regexp.Regexp
	for _, name := range slices.Concat(yes, no) {
		patterns = append(patterns, like(normal(name)))
	}
	return func(r Request) bool {
		named := slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(of(r)) })
		return named == (no == nil)
	}, nil
}

// principals compiles Principal or NotPrincipal: "*", or an object from type to names.
func principals(yes, no any) (func(Request) bool, error) {
	if (yes == nil) == (no == nil) {
		return nil, errors.New("it needs one of Principal and NotPrincipal")
	}
	element := yes
	if no != nil {
		element = no
	}
	var aws, services []string
	switch e := element.(type) {
	case map[string]any:
		for kind, to := range map[string]*[]string{"AWS": &aws, "Service": &services} {
			var err error
			if *to, err = texts(e[kind]); err != nil {
				return nil, fmt.Errorf("the principal: %w", err)
			}
		}
	case string:
		if e != "*" {
			return nil, fmt.Errorf(`the principal %q is neither "*" nor an object`, e)
		}
		aws = []string{e}
	default:
		return nil, errors.New(`the principal is neither "*" nor an object`)
	}
	return func(r Request) bool {
		named := slices.Contains(aws, "*") || slices.Contains(services, r.Service)
		if r.Service == "" {
			named = slices.ContainsFunc(aws, func(name string) bool { return name == "*" || identifies(name, r) })
		}
		return named == (no == nil)
	}, nil
}

var accountRoot = regexp.MustCompile(`\Aarn:[a-z-]+:iam::([0-9]{12}):root\z`)

// identifies reports whether a principal is the calling identity, or its whole account.
func identifies(name string, r Request) bool {
	if m := accountRoot.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	return name == r.ARN || name == r.RoleARN && name != "" || name == r.Account
}

// texts returns a string or a list of strings.
func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var all []string
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("%v is not a string", item)
			}
			all = append(all, s)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%v is neither a string nor a list", v)
}
