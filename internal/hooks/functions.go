package hooks

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// function is a template function. The size of its result is bounded.
type function func(args []any) (any, error)

// functions are the template functions. None can produce a large output from a
// small input.
func functions() map[string]function {
	return map[string]function{
		"json": func(args []any) (any, error) {
			if len(args) != 1 {
				return nil, errors.New("json takes one value")
			}
			if text, is := args[0].(verbatim); is {
				args[0] = string(text)
			}
			text, err := marshal(args[0])
			if err == nil && len(text) > MaxBody {
				err = errTooLong
			}
			return verbatim(text), err
		},
		"print":    func(args []any) (any, error) { return within(fmt.Sprint(escaped(args)...)) },
		"printf":   func(args []any) (any, error) { return printf(escaped(args)) },
		"urlquery": urlQuery,
		"raw":      raw,
		"not": func(args []any) (any, error) {
			if len(args) != 1 {
				return nil, errors.New("not takes one value")
			}
			return !isTrue(args[0]), nil
		},
		"and": func(args []any) (any, error) { return firstThat(args, func(v any) bool { return !isTrue(v) }) },
		"or":  func(args []any) (any, error) { return firstThat(args, isTrue) },
		"eq":  func(args []any) (any, error) { return compare(args, "eq") },
		"ne": func(args []any) (any, error) {
			same, err := compare(args, "ne")
			return !same, err
		},
	}
}

// urlQuery escapes text for the query of a URL, which leaves no markup in it.
func urlQuery(args []any) (any, error) {
	texts := make([]any, len(args))
	for i, arg := range args {
		texts[i] = plain(arg)
	}
	return within(url.QueryEscape(fmt.Sprint(texts...)))
}

// raw returns text from outside without escaping its markup.
func raw(args []any) (any, error) {
	if len(args) == 1 {
		if text, is := plain(args[0]).(string); is {
			return text, nil
		}
	}
	return nil, errors.New("raw takes one text, such as raw .Message")
}

func within(text string) (any, error) {
	if len(text) > MaxBody {
		return nil, errTooLong
	}
	return text, nil
}

// wide matches a verb with a width or precision above 99, or with *.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{3,}|\*)`)

// printf is fmt.Sprintf without verbs that can produce a large output.
func printf(args []any) (any, error) {
	format, ok := "", false
	if len(args) > 0 {
		format, ok = args[0].(string)
	}
	switch {
	case !ok:
		return nil, errors.New("printf takes a format and values")
	case wide.MatchString(format):
		return nil, errors.New("printf takes no width or precision above 99, and no *")
	}
	long := 0
	for _, arg := range args[1:] {
		long += len(fmt.Sprint(arg))
	}
	// Each verb may write the longest argument, and 100 characters of padding.
	if strings.Count(format, "%")*(long+100) > 4*MaxBody || len(format) > MaxBody {
		return nil, errTooLong
	}
	return within(fmt.Sprintf(format, args[1:]...))
}

// firstThat returns the first value for which stops is true, or the last value.
func firstThat(args []any, stops func(any) bool) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("and, or take one value or more")
	}
	for _, v := range args {
		if stops(v) {
			return v, nil
		}
	}
	return args[len(args)-1], nil
}

// compare reports whether two values are the same string, number or boolean.
func compare(args []any, name string) (bool, error) {
	if len(args) != 2 {
		return false, fmt.Errorf("%s takes two values", name)
	}
	for _, v := range args {
		if _, is := v.(fields); is {
			return false, fmt.Errorf("%s takes strings, numbers or booleans", name)
		}
	}
	return plain(args[0]) == plain(args[1]), nil
}

// isTrue follows text/template: empty, zero and absent values are false.
func isTrue(v any) bool {
	switch v := plain(v).(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int64:
		return v != 0
	case float64:
		return v != 0
	}
	return true
}
