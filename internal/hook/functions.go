package hook

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// functions are what templates may call beside comparisons: json, and those of
// text/template that make text, bounded. A variable that holds a text twice as
// long as the one before would else fill the memory in forty lines.
func functions() template.FuncMap {
	return template.FuncMap{
		"json": func(value any) (string, error) {
			text, err := marshal(value)
			if err != nil {
				return "", err
			}
			return within(string(text))
		},
		"print":    writes(fmt.Sprint),
		"println":  writes(fmt.Sprintln),
		"html":     writes(template.HTMLEscaper),
		"js":       writes(template.JSEscaper),
		"urlquery": writes(template.URLQueryEscaper),
		"printf":   printf,
	}
}

func within(text string) (string, error) {
	if len(text) > MaxBody {
		return "", errTooLong
	}
	return text, nil
}

// writes bounds a function that writes its arguments one after the other.
func writes(write func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if lengths(args) > MaxBody {
			return "", errTooLong
		}
		return within(write(args...))
	}
}

// wide matches a verb with a width or a precision that is long, or not known.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{3,}|\*)`)

// printf is fmt's, but for verbs that make much of little.
func printf(format string, args ...any) (string, error) {
	if wide.MatchString(format) {
		return "", errors.New("printf takes no width or precision above 99, and no *")
	}
	// Each verb may write the longest argument, and 100 characters of padding.
	if strings.Count(format, "%")*(lengths(args)+100) > 4*MaxBody || len(format) > MaxBody {
		return "", errTooLong
	}
	return within(fmt.Sprintf(format, args...))
}

// lengths is about how long the arguments are in all.
func lengths(args []any) int {
	total := 0
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			total += len(text)
			continue
		}
		total += len(fmt.Sprint(arg)) // a number, a bool or the counts of pods
	}
	return total
}
