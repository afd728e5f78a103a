package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/text/levenshtein"
)

// missingHint explains why there is no value at a path: a misspelt key, a scalar on the way, or an object at the end.
func (e *Event) missingHint(path string, at place) string {
	switch {
	case at.object != nil:
		return fmt.Sprintf("%s is an object; a pattern must name one of its fields: %s", path, strings.Join(abbreviate(keysOf(at.object)), ", "))
	case at.empty:
		return path + " is an empty array, which has no value to match"
	}
	n, keys := e.root, strings.Split(path, ".")
	for i, key := range keys {
		n = n.firstObject()
		sofar := strings.Join(keys[:i], ".")
		if n.kind != kindObject {
			return fmt.Sprintf("%s is %s, it has no fields", sofar, n.kind)
		}
		if next := n.get(key); next != nil {
			n = next
			continue
		}
		where := "the event"
		if i > 0 {
			where = sofar
		}
		if other := similarKey(key, keysOf(n)); other != "" {
			return fmt.Sprintf("%s has no %s, it has %s; did you mean that?", where, quote(key), quote(other))
		}
		for _, tail := range [][]string{keys[i:], keys[len(keys)-1:]} {
			if elsewhere := e.elsewhere(tail, path); elsewhere != "" {
				return fmt.Sprintf("%s has no %s; did you mean %s?", where, quote(key), elsewhere)
			}
		}
		return fmt.Sprintf("%s has no %s", where, quote(key))
	}
	return "" // another element of an array can contain the path
}

// firstObject looks through arrays for the first object; without one it returns the first element, or the array.
func (n *node) firstObject() *node {
	for n.kind == kindArray && len(n.items) > 0 {
		i := slices.IndexFunc(n.items, func(item *node) bool { return !item.scalar() })
		n = n.items[max(i, 0)]
	}
	return n
}

// elsewhere returns the first other path in the event at which the same keys lead to a value.
func (e *Event) elsewhere(keys []string, path string) string {
	const deep = 4
	want := strings.Join(keys, ".")
	found := ""
	var visit func(n *node, prefix string, depth int)
	visit = func(n *node, prefix string, depth int) {
		n = n.firstObject()
		if n.kind != kindObject || depth > deep {
			return
		}
		if p := (place{}); found == "" && prefix+want != path {
			if n.collect(want, &p); len(p.values) > 0 {
				found = prefix + want
			}
		}
		for _, m := range n.members {
			visit(m.value, prefix+m.key+".", depth+1)
		}
	}
	visit(e.root, "", 0)
	return found
}

func abbreviate(keys []string) []string {
	const most = 8
	if len(keys) > most {
		return append(slices.Clone(keys[:most]), "…")
	}
	return keys
}

// detailTypeHint compares the expected names with the event's name and with the known names of AWS.
func (e *Event) detailTypeHint(l *leaf, found []*node) string {
	source := ""
	if s := e.root.get("source"); s != nil && s.kind == kindString {
		source = s.text
	}
	known := detailTypesOf(source)
	for _, t := range l.tests {
		want, ok := t.(exactString)
		if !ok || slices.Contains(known, want.want) {
			continue // the known name of another event
		}
		for _, f := range found {
			if f.kind == kindString && similar(want.want, f.text) {
				if foldCase(want.want) == foldCase(f.text) {
					break // valueHint reports the case difference
				}
				return fmt.Sprintf("detail-type wants %s, the event has %s; did you mean that?", quote(want.want), f)
			}
		}
		if near := nearest(want.want, known); near != "" && foldCase(near) != foldCase(want.want) {
			return fmt.Sprintf("%s is not a detail-type known of %s; did you mean %s?", quote(want.want), orAWS(source), quote(near))
		}
	}
	return ""
}

func orAWS(source string) string {
	if source == "" {
		return "AWS"
	}
	return source
}

// valueHint finds the alternative that is nearest to a value of the event.
func valueHint(l *leaf, found []*node) (Problem, string) {
	for _, t := range l.tests {
		for _, f := range found {
			if hint := pairHint(l.path, t, f); hint != "" {
				if wrongType(t, f) {
					return ProblemType, hint
				}
				return ProblemValue, hint
			}
		}
	}
	return ProblemValue, ""
}

// wrongType reports whether a test can never match a value because of its JSON type.
func wrongType(t test, f *node) bool { return !typeFits(t, f.kind) }

// typeFits reports whether a test can match values of a JSON type.
func typeFits(t test, k kind) bool {
	wants, confined := requiredType(t)
	return !confined || wants == k
}

// requiredType returns the only JSON type that a test accepts, if there is only one.
func requiredType(t test) (kind, bool) {
	switch t := t.(type) {
	case exactString, affix, equalFold, wildcard, cidr:
		return kindString, true
	case exactNumber, numeric:
		return kindNumber, true
	case keyword:
		return t.kind, true
	default:
		return 0, false
	}
}

func pairHint(path string, t test, f *node) string {
	if wrongType(t, f) {
		return typeHint(t, f)
	}
	switch t := t.(type) {
	case anythingBut:
		return fmt.Sprintf("%s is among what %s excludes", f, t)
	case exactString:
		return exactHint(path, t.want, f.text)
	case affix:
		return affixHint(t, f.text)
	case wildcard:
		if (wildcard{literals: foldAll(t.literals)}).holds(folded(f)) {
			return fmt.Sprintf("differs only in case from %s; a wildcard is case-sensitive", f)
		}
		return zoneARNHint(t.literals[0], f.text)
	}
	return ""
}

func typeHint(t test, f *node) string {
	wants, _ := requiredType(t)
	switch exact, isNumber := t.(exactNumber); {
	case isNumber && f.text == exact.text, t.String() == f.text && f.kind == kindString:
		return fmt.Sprintf("the event has the string %s, not %s; write [%s]", f, wants, f)
	case f.kind != kindString && t.String() == quote(f.text):
		return fmt.Sprintf("the event has %s, not a string; write [%s]", f.kind, f)
	default:
		return fmt.Sprintf("%s only matches %s, the event has %s", t, wants, f.kind)
	}
}

func exactHint(path, want, found string) string {
	switch {
	case foldCase(want) == foldCase(found):
		return fmt.Sprintf("differs only in case; write %s (matching is case-sensitive)", quote(found))
	case strings.TrimSpace(want) == strings.TrimSpace(found):
		return "differs only in spaces at the ends"
	case strings.Contains(want, "*") && globs(want, found):
		return fmt.Sprintf("* has no meaning in an exact value; write {\"wildcard\":%s}", quote(want))
	case strings.HasPrefix(found, want) && strings.HasPrefix(want, "arn:"):
		return fmt.Sprintf("an exact value must be complete; write {\"prefix\":%s} to match its beginning", quote(want))
	case path != "id" && isTypo(want, found):
		return fmt.Sprintf("the event has %s; did you mean that?", quote(found))
	}
	return zoneARNHint(want, found)
}

// isTypo reports whether two words differ by a typing error. Texts with digits are ids, whose similarity has no
// meaning.
func isTypo(want, found string) bool {
	if len(want) < 4 || len(want) > maxCompared || len(found) > maxCompared {
		return false
	}
	return !strings.ContainsAny(want+found, "0123456789") && levenshtein.Distance(want, found) <= max(1, len(want)/6)
}

func globs(want, found string) bool {
	return wildcard{literals: strings.Split(want, "*")}.holds(&node{kind: kindString, text: found})
}

func affixHint(t affix, found string) string {
	if loose := (affix{suffix: t.suffix, fold: true, want: foldCase(t.text)}); !t.fold && loose.holds(&node{kind: kindString, text: found}) {
		return fmt.Sprintf("differs only in case; a %s is case-sensitive", t.name())
	}
	if !t.suffix {
		return zoneARNHint(t.text, found)
	}
	return ""
}

func folded(f *node) *node { return &node{kind: f.kind, text: foldCase(f.text)} }

func foldAll(texts []string) []string {
	var all []string
	for _, t := range texts {
		all = append(all, foldCase(t))
	}
	return all
}

// zoneARN matches the resource of a spot interruption or a rebalance recommendation. It has the availability zone in
// place of the region, and no account (EC2 User Guide, "Spot Instance interruption notices").
var zoneARN = regexp.MustCompile(`^arn:(aws[a-z-]*):ec2:([a-z]{2}(?:-[a-z]+)+-[0-9]+)([a-z]):instance/`)

// zoneARNHint explains why an ARN with a region and an account cannot match such a resource.
func zoneARNHint(want, found string) string {
	m := zoneARN.FindStringSubmatch(found)
	if m == nil || strings.HasPrefix(found, want) || !strings.HasPrefix(want, "arn:"+m[1]+":ec2:") {
		return ""
	}
	return fmt.Sprintf("the resource names the availability zone %s%s in place of the region, and no account; "+
		"match detail.instance-id, or write {\"wildcard\":\"arn:%s:ec2:%s*:instance/*\"}", m[2], m[3], m[1], m[2])
}
