package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// options reads words of the form key=value, or key alone.
func options(words []string, known map[string]func(string) error) error {
	seen := map[string]bool{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		read, ok := known[key]
		switch {
		case !ok:
			return fmt.Errorf("unknown option %q: there are %s", key, orList(slices.Sorted(maps.Keys(known))))
		case seen[key]:
			return fmt.Errorf("option %s is given twice", key)
		}
		seen[key] = true
		if err := read(value); err != nil {
			return fmt.Errorf("option %s: %w", key, err)
		}
	}
	return nil
}

func set(to *string) func(string) error {
	return func(v string) error {
		*to = v
		return needValue(v)
	}
}

func needValue(v string) error {
	if v == "" {
		return fmt.Errorf("a value is missing")
	}
	return nil
}

func flag(f func()) func(string) error {
	return func(v string) error {
		if v != "" {
			return fmt.Errorf("it takes no value")
		}
		f()
		return nil
	}
}

func oneOf[T ~string](to *T, allowed ...T) func(string) error {
	return func(v string) error {
		if slices.Contains(allowed, T(v)) {
			*to = T(v)
			return nil
		}
		var names []string
		for _, a := range allowed {
			names = append(names, string(a))
		}
		return fmt.Errorf("unknown value %q: write %s", v, orList(names))
	}
}

func duration(to *time.Duration) func(string) error {
	return func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is no duration: write one such as 90s", v)
		}
		*to = d
		return nil
	}
}

func parseWhen(text string) (When, error) {
	var w When
	rest := text
	for _, from := range []Anchor{FromDeadline, FromWindow, FromJob} {
		if after, ok := strings.CutPrefix(text, string(from)); ok {
			w.From, rest = from, after
		}
	}
	if w.From != FromNotice && rest == "" {
		return w, nil
	}
	d, err := time.ParseDuration(rest)
	signed := strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-")
	if err != nil || signed == (w.From == FromNotice) {
		return w, fmt.Errorf("%q is no moment: write one such as 60s, deadline, deadline-10s or window+5s", text)
	}
	w.Offset = d
	return w, nil
}

// orList is "a, b or c".
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
