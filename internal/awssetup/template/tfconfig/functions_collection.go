package tfconfig

import (
	"maps"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// collectionFunctions returns the functions of lists and maps.
func collectionFunctions() map[string]func([]any) (any, bool) {
	return map[string]func([]any) (any, bool){
		"merge":    merge,
		"concat":   concatLists,
		"flatten":  flatten,
		"lookup":   lookup,
		"element":  element,
		"zipmap":   zipmap,
		"length":   length,
		"contains": contains,
		"toset":    distinct,
		"setunion": func(a []any) (any, bool) {
			all, ok := concatLists(a)
			if !ok {
				return nil, false
			}
			return distinct([]any{all})
		},
		"distinct": distinct,
		"compact":  compact,
		"tolist":   whole,
		"tomap":    whole,
		"keys": func(a []any) (any, bool) {
			keys, _, ok := ofOne(a)
			return keys, ok
		},
		"values": func(a []any) (any, bool) {
			_, values, ok := ofOne(a)
			return values, ok
		},
		"one": func(a []any) (any, bool) {
			_, values, ok := ofOne(a)
			if !ok || len(values) > 1 {
				return nil, false
			}
			if len(values) == 0 {
				return nil, true
			}
			return values[0], true
		},
		"sort": func(a []any) (any, bool) {
			if len(a) != 1 {
				return nil, false
			}
			all, ok := textsOf(a[0])
			slices.Sort(all)
			return list(all), ok
		},
		"coalescelist": coalesceList,
		"tonumber":     toNumber,
		"tobool":       toBool,
		"alltrue": func(a []any) (any, bool) {
			return every(a, symbol.Yes, func(x, y symbol.Truth) symbol.Truth { return min(x, y) })
		},
		"anytrue": func(a []any) (any, bool) {
			return every(a, symbol.No, func(x, y symbol.Truth) symbol.Truth { return max(x, y) })
		},
	}
}

func coalesceList(a []any) (any, bool) {
	for _, v := range a {
		if _, values, ok := elements(v); !ok && v != nil {
			return nil, false
		} else if len(values) > 0 {
			return v, true
		}
	}
	return nil, false
}

func toNumber(a []any) (any, bool) {
	if len(a) != 1 {
		return nil, false
	}
	n, ok := number(a[0])
	return ofNumber(n), ok
}

func toBool(a []any) (any, bool) {
	if len(a) != 1 || truth(a[0]) == symbol.Maybe {
		return nil, false
	}
	return truth(a[0]) == symbol.Yes, true
}

// ofOne returns the elements of the only argument.
func ofOne(a []any) (keys, values []any, ok bool) {
	if len(a) != 1 {
		return nil, nil, false
	}
	keys, values, ok = elements(a[0])
	return append([]any{}, keys...), append([]any{}, values...), ok
}

// whole returns a collection as it is.
func whole(a []any) (any, bool) {
	if len(a) != 1 {
		return nil, false
	}
	_, _, ok := elements(a[0])
	return a[0], ok || a[0] == nil
}

func merge(a []any) (any, bool) {
	all := map[string]any{}
	for _, v := range a {
		one, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, false
		}
		maps.Copy(all, one)
	}
	return all, true
}

func concatLists(a []any) (any, bool) {
	all := []any{}
	for _, v := range a {
		_, values, ok := elements(v)
		if !ok {
			return nil, false
		}
		all = append(all, values...)
	}
	return all, true
}

func flatten(a []any) (any, bool) {
	all := []any{}
	for _, v := range a {
		inner, ok := v.([]any)
		if !ok {
			if isOpen(v) {
				return nil, false
			}
			all = append(all, v)
			continue
		}
		flat, ok := flatten(inner)
		values, isList := flat.([]any)
		if !ok || !isList {
			return nil, false
		}
		all = append(all, values...)
	}
	return all, true
}

func lookup(a []any) (any, bool) {
	if len(a) < 2 {
		return nil, false
	}
	key, ok := text(a[1])
	in, isMap := a[0].(map[string]any)
	if !ok || !isMap || symbol.Within(key) {
		return nil, false
	}
	if v, there := in[key]; there {
		return v, true
	}
	if len(a) == 3 {
		return a[2], true
	}
	return failed("lookup"), true
}

func element(a []any) (any, bool) {
	if len(a) != 2 {
		return nil, false
	}
	_, values, ok := elements(a[0])
	i, isNumber := number(a[1])
	if !ok || !isNumber || len(values) == 0 || i < 0 {
		return nil, false
	}
	return values[int(i)%len(values)], true
}

func zipmap(a []any) (any, bool) {
	if len(a) != 2 {
		return nil, false
	}
	keys, ok := textsOf(a[0])
	_, values, okValues := elements(a[1])
	if !ok || !okValues || len(keys) != len(values) {
		return nil, false
	}
	all := map[string]any{}
	for i, key := range keys {
		all[key] = values[i]
	}
	return all, true
}

func length(a []any) (any, bool) {
	if len(a) != 1 {
		return nil, false
	}
	if t, isText := a[0].(string); isText {
		return ofNumber(float64(len([]rune(t)))), !symbol.Within(t)
	}
	_, values, ok := elements(a[0])
	return ofNumber(float64(len(values))), ok
}

func contains(a []any) (any, bool) {
	if len(a) != 2 {
		return nil, false
	}
	_, values, ok := elements(a[0])
	result := symbol.No
	for _, v := range values {
		result = max(result, equal(v, a[1]))
	}
	return result == symbol.Yes, ok && result != symbol.Maybe
}

func distinct(a []any) (any, bool) {
	_, values, ok := ofOne(a)
	all := []any{}
	for _, v := range values {
		if !slices.ContainsFunc(all, func(o any) bool { return encode(o) == encode(v) }) {
			all = append(all, v)
		}
	}
	return all, ok
}

func compact(a []any) (any, bool) {
	_, values, ok := ofOne(a)
	return slices.DeleteFunc(values, func(v any) bool { return v == nil || v == "" }), ok
}

func every(a []any, from symbol.Truth, join func(x, y symbol.Truth) symbol.Truth) (any, bool) {
	_, values, ok := ofOne(a)
	for _, v := range values {
		from = join(from, truth(v))
	}
	return from == symbol.Yes, ok && from != symbol.Maybe
}
