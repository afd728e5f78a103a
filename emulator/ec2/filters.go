package ec2

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// Filter restricts a list: one of its values must match. Values may contain the wildcards * and ?;
// \ makes either literal.
type Filter struct {
	Name   string
	Values []string `query:"Value"`
}

// field returns the values that a filter compares.
type field[T any] func(T) []string

// one makes a field of a function that returns one value; an empty value matches nothing.
func one[T any](f func(T) string) field[T] {
	return func(t T) []string {
		if v := f(t); v != "" {
			return []string{v}
		}
		return nil
	}
}

// filtered returns the items that match all filters. The names tag:<key>, tag-key and tag-value
// work on every kind of item; other names must be in fields.
func filtered[T any](list []T, filters []Filter, tags func(T) map[string]string, fields map[string]field[T]) ([]T, error) {
	for _, f := range filters {
		read, err := reader(f.Name, tags, fields)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(t T) bool {
			return !slices.ContainsFunc(read(t), func(v string) bool { return anyMatches(f.Values, v) })
		})
	}
	return list, nil
}

func reader[T any](name string, tags func(T) map[string]string, fields map[string]field[T]) (field[T], error) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		return func(t T) []string {
			if v, has := tags(t)[key]; has {
				return []string{v}
			}
			return nil
		}, nil
	}
	if f := fields[name]; f != nil {
		return f, nil
	}
	if name != "tag-key" && name != "tag-value" {
		return nil, invalidValue("The filter '" + name + "' is invalid")
	}
	return func(t T) []string {
		var out []string
		for k, v := range tags(t) {
			if name == "tag-key" {
				v = k
			}
			out = append(out, v)
		}
		return out
	}, nil
}

func anyMatches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, text) })
}

// matches compares text with a pattern of EC2's wildcards.
func matches(pattern, text string) bool {
	for pattern != "" {
		switch {
		case pattern[0] == '*':
			for i := 0; i <= len(text); i++ {
				if matches(pattern[1:], text[i:]) {
					return true
				}
			}
			return false
		case text == "":
			return false
		case pattern[0] == '?':
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if pattern[0] != text[0] {
				return false
			}
		}
		pattern, text = pattern[1:], text[1:]
	}
	return text == ""
}

// paging is the part of a request that asks for one page.
type paging struct {
	MaxResults *int
	NextToken  string
}

// page returns one page of a list, or the whole list if the request has no page size.
func page[T any](list []T, p paging, least int) (items []T, next string, err error) {
	return pageUpTo(list, p, least, 1000)
}

// pageUpTo is page for actions with another maximum page size.
func pageUpTo[T any](list []T, p paging, least, most int) (items []T, next string, err error) {
	start := 0
	if p.NextToken != "" {
		raw, decodeErr := base64.StdEncoding.DecodeString(p.NextToken)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", invalidValue("Unable to parse pagination token")
		}
		start = min(n, len(list))
	}
	end := len(list)
	if p.MaxResults != nil {
		if *p.MaxResults < least || *p.MaxResults > most {
			return nil, "", invalidValue("Value ( " + strconv.Itoa(*p.MaxResults) + " ) for parameter maxResults is invalid. Expecting a value between " + strconv.Itoa(least) + " and " + strconv.Itoa(most) + ".")
		}
		end = min(start+*p.MaxResults, end)
	}
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}
