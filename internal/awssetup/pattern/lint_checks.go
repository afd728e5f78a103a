package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// regionAndAccount matches the beginning of an EC2 ARN up to its region.
var regionAndAccount = regexp.MustCompile(`^arn:aws[a-z-]*:ec2:[a-z]{2}(-[a-z]+)+-[0-9]+:`)

// envelopeKeys are all top-level keys of an event (EventBridge User Guide, "Events structure"). replay-name exists in
// events that are replayed from an archive.
func envelopeKeys() []string {
	return []string{"version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail", "replay-name"}
}

// envelope reports top-level keys that no event has. EventBridge accepts them, and the rule never matches.
func (l *linter) envelope(b branch) {
	for _, leaf := range b.leaves {
		key, _, _ := strings.Cut(leaf.path, ".")
		if leaf.absent || slices.Contains(envelopeKeys(), key) {
			continue
		}
		f := Finding{Severity: SeverityError, Code: "unknown-key", Path: leaf.path,
			Message: fmt.Sprintf("no event has the top-level key %s; EventBridge accepts it, and the rule never matches", quote(key))}
		if right := similarKey(key, envelopeKeys()); right != "" {
			f.Suggestion, f.wrong, f.right = "write "+quote(right), quote(key), quote(right)
		} else if under := catalogueKey("detail." + leaf.path); under {
			f.Suggestion = fmt.Sprintf("put it under %s", quote("detail"))
		}
		l.add(f)
	}
}

// catalogueKey reports whether some sample has a value at the path.
func catalogueKey(path string) bool {
	return slices.ContainsFunc(catalogue(), func(k knownEvent) bool { return len(k.event.at(path).values) > 0 })
}

// awsPrefix matches the common notations of the beginning of an AWS source.
var awsPrefix = regexp.MustCompile(`(?i)^(aws|amazon)[.:/-]`)

// sources reports sources that are misspellings of a known one. A plain "ec2" can be a custom source, so it is
// reported only together with AWS detail-types.
func (l *linter) sources(b branch) {
	known, accepted := knownSources(), b.awsSources()
	for _, source := range accepted {
		right := "aws." + strings.TrimSuffix(foldCase(awsPrefix.ReplaceAllString(source, "")), ".amazonaws.com")
		if slices.Contains(known, source) || !slices.Contains(known, right) || slices.Contains(accepted, right) {
			continue
		}
		if awsPrefix.MatchString(source) || strings.HasSuffix(source, ".amazonaws.com") || b.onlyKnownTypes() {
			l.add(Finding{Severity: SeverityError, Code: "unknown-source", Path: "source",
				Message:    fmt.Sprintf("AWS does not send events from the source %s", quote(source)),
				Suggestion: "write " + quote(right), wrong: quote(source), right: quote(right)})
		}
	}
}

// detailTypes reports unknown detail-types, if the pattern is about sources in the catalogue.
func (l *linter) detailTypes(b branch) {
	sources := b.awsSources()
	if b.leaf("source") != nil && !slices.ContainsFunc(sources, func(s string) bool { return slices.Contains(knownSources(), s) }) {
		return // custom events
	}
	var names []string
	for _, s := range sources {
		names = append(names, detailTypesOf(s)...)
	}
	if b.leaf("source") == nil {
		names = detailTypesOf("")
	}
	for _, want := range b.exactValues("detail-type") {
		if !slices.Contains(names, want) {
			l.detailType(b, want, sources, names)
		}
	}
}

func (l *linter) detailType(b branch, want string, sources, names []string) {
	f := Finding{Severity: SeverityWarning, Code: "unknown-detail-type", Path: "detail-type",
		Message: fmt.Sprintf("%s is not a detail-type known of %s", quote(want), orAWS(strings.Join(sources, ", ")))}
	near := nearest(want, names)
	switch elsewhere := sourceOf(want); {
	case elsewhere != "" && b.fromKnownSource():
		f.Severity, f.Code = SeverityError, "wrong-source"
		f.Message = fmt.Sprintf("%s is sent from %s, not from %s", quote(want), elsewhere, strings.Join(sources, ", "))
		f.Suggestion, f.wrong, f.right = fmt.Sprintf("write \"source\":[%s]", quote(elsewhere)), quote(sources[0]), quote(elsewhere)
		if len(sources) > 1 || len(b.exactValues("detail-type")) > 1 { // the others need theirs
			f.Suggestion, f.right = fmt.Sprintf("add %s to source", quote(elsewhere)), f.wrong+","+f.right
		}
	case elsewhere != "":
		return
	case near != "":
		f.Suggestion, f.wrong, f.right = "did you mean "+quote(near)+"?", quote(want), quote(near)
		if b.fromKnownSource() {
			f.Severity = SeverityError
		}
		if foldCase(near) == foldCase(want) {
			f.Suggestion = fmt.Sprintf("write %s: matching is case-sensitive", quote(near))
		}
	case !b.fromKnownSource():
		return // not similar to an AWS name, and possibly a custom event
	}
	l.add(f)
}

// sourceOf returns the source that sends a detail-type, or "".
func sourceOf(detailType string) string {
	for _, k := range catalogue() {
		if !k.anySource && slices.Contains(k.detailTypes, detailType) {
			return k.Source
		}
	}
	return ""
}

// fields checks all other fields against the kinds of event that source and detail-type select. It skips patterns
// that select neither a known source nor a known detail-type.
func (l *linter) fields(b branch, sent []*knownEvent) {
	if len(sent) == 0 || b.asksForOtherTypes() || !b.fromKnownSource() && !b.onlyKnownTypes() {
		return
	}
	for _, leaf := range b.leaves {
		if leaf.path == "source" || leaf.path == "detail-type" || leaf.absent {
			continue
		}
		for _, t := range leaf.tests {
			if !slices.ContainsFunc(sent, func(k *knownEvent) bool { return k.accepts(leaf.path, t) }) {
				l.field(leaf.path, t, sent)
			}
		}
	}
}

// onlyKnownTypes reports whether the branch names detail-types and all of them are in the catalogue.
func (b branch) onlyKnownTypes() bool {
	l, accepted := b.leaf("detail-type"), b.exactValues("detail-type")
	return l != nil && len(accepted) == len(l.all) && !slices.ContainsFunc(accepted, func(s string) bool { return sourceOf(s) == "" })
}

// field reports a test that no event of the given kinds can satisfy.
func (l *linter) field(path string, t test, sent []*knownEvent) {
	f := Finding{Severity: SeverityError, Path: path}
	if strings.HasPrefix(path, "detail.") || path == "resources" || slices.Contains(envelopeKeys(), path) {
		if !l.value(&f, t, sent) {
			l.path(&f, sent)
		}
		l.add(f)
	} // else: envelope has reported the key
}

// value completes a finding about the value at an existing path. It reports whether the path exists.
func (l *linter) value(f *Finding, t test, sent []*knownEvent) bool {
	for _, k := range sent {
		at := k.event.at(f.Path)
		values := k.values[f.Path]
		switch {
		case values != nil:
			f.Code, f.Severity = "unknown-value", SeverityWarning
			f.Message = fmt.Sprintf("%s is not among the values of %s: %s", t, f.Path, strings.Join(values, ", "))
			l.rightValue(f, t, values)
		case len(at.values) == 0:
			continue
		case wrongType(t, at.values[0]):
			f.Code = "wrong-type"
			f.Message = fmt.Sprintf("%s only matches %s, but %s is %s", t, requiredTypeName(t), f.Path, at.values[0].kind)
			if at.values[0].kind == kindString {
				right := quote(strings.Trim(t.String(), `"`))
				f.Suggestion, f.wrong, f.right = fmt.Sprintf("write [%s]", right), "["+t.String()+"]", "["+right+"]"
			}
		case formats[f.Path] != nil:
			f.Code = "unknown-value"
			f.Message = fmt.Sprintf("%s never matches: it is not an AWS %s, such as %s", t, f.Path, at.values[0])
			if s, ok := t.(exactString); ok && foldCase(s.want) == foldCase(at.values[0].text) {
				f.Suggestion, f.wrong, f.right = fmt.Sprintf("write %s: matching is case-sensitive", at.values[0]), quote(s.want), at.values[0].String()
			}
		default:
			f.Code = "zone-arn"
			f.Message = fmt.Sprintf("%s never matches: the resource of %s names an availability zone in place of the region, and no account", t, quote(k.DetailType))
			f.Suggestion = `match detail.instance-id, or write {"wildcard":"arn:aws:ec2:<region>*:instance/*"}`
		}
		return true
	}
	return false
}

// rightValue suggests the value of a closed set that is probably intended.
func (l *linter) rightValue(f *Finding, t test, values []string) {
	switch t := t.(type) {
	case exactString:
		for _, v := range values {
			if foldCase(v) == foldCase(t.want) {
				f.Severity, f.Suggestion = SeverityError, fmt.Sprintf("write %s: matching is case-sensitive", quote(v))
				f.wrong, f.right = quote(t.want), quote(v)
				return
			}
		}
		if near := nearest(t.want, values); near != "" {
			f.Suggestion, f.wrong, f.right = "did you mean "+quote(near)+"?", quote(t.want), quote(near)
		}
	case exactNumber, keyword:
		if slices.Contains(values, t.String()) {
			f.Code, f.Severity = "wrong-type", SeverityError
			f.Message = fmt.Sprintf("%s only matches %s, but %s is a string", t, requiredTypeName(t), f.Path)
			f.Suggestion = fmt.Sprintf("write [%s]", quote(t.String()))
			f.wrong, f.right = "["+t.String()+"]", "["+quote(t.String())+"]"
		}
	}
}

func requiredTypeName(t test) string {
	k, _ := requiredType(t)
	return k.String()
}

// path completes a finding about a path that none of the kinds of event has.
func (l *linter) path(f *Finding, sent []*knownEvent) {
	f.Code, f.Severity = "unknown-field", SeverityWarning
	f.Message = fmt.Sprintf("none of the selected events is known to have %s", f.Path)
	for _, k := range sent {
		hint := k.event.missingHint(f.Path, k.event.at(f.Path))
		if strings.Contains(hint, "it has") || strings.Contains(hint, "must name") {
			f.Severity = SeverityError
		} else if !strings.Contains(hint, "did you mean") {
			continue
		}
		f.Suggestion = fmt.Sprintf("in %s: %s", quote(k.DetailType), hint)
		return
	}
}

// deadTypes reports detail-types that the pattern names but that its other fields exclude, while others can match:
// the rule works for those, so the missing ones are not noticed.
func (l *linter) deadTypes(b branch, sent, matched []*knownEvent) {
	if len(matched) == 0 {
		return
	}
	for _, name := range b.exactValues("detail-type") {
		named := func(k *knownEvent) bool { return slices.Contains(k.detailTypes, name) }
		i := slices.IndexFunc(sent, named)
		if i < 0 || slices.ContainsFunc(matched, named) {
			continue
		}
		path := sent[i].blockingLeaf(b).path
		l.add(Finding{Severity: SeverityError, Code: "dead-detail-type", Path: path,
			Message:    fmt.Sprintf("%s never matches: the pattern's condition on %s excludes it", quote(name), path),
			Suggestion: "use a separate rule for it, or put the fields into $or"})
	}
}

// noise reports patterns that match far more than interruptions. Quiet narrows them.
func (l *linter) noise(b branch, matched []*knownEvent) {
	alone := !slices.ContainsFunc(matched, func(k *knownEvent) bool { return k.Name != "instance-state-change" && k.Source != "aws.health" })
	for _, k := range matched {
		switch {
		case k.Name == "instance-state-change" && b.leaf("detail.state") == nil && b.leaf("detail.instance-id") == nil:
			l.add(Finding{Severity: SeverityAdvice, Code: "noise", Path: "detail.state",
				Message:    "without detail.state every start of an instance sends a message, which also hides that another rule matches nothing",
				Suggestion: suggestField(alone, stateChange, `"state":["stopping","stopped","shutting-down","terminated"]`)})
		case k.Source == "aws.health" && b.leaf("detail.service") == nil && b.leaf("detail.eventTypeCode") == nil:
			l.add(Finding{Severity: SeverityAdvice, Code: "noise", Path: "detail.service",
				Message:    "without detail.service the events of every AWS service send messages",
				Suggestion: suggestField(alone, healthEvent, `"service":["EC2","EBS","EKS"]`)})
		}
	}
}

// suggestField suggests a field of detail. A pattern that brings other events too would lose them with it.
func suggestField(alone bool, detailType, field string) string {
	if alone {
		return "add " + field + " to detail"
	}
	return fmt.Sprintf("move %s to a rule of its own, with %s in detail, and name the other detail-types", quote(detailType), field)
}
