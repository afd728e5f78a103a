package pattern

// anythingBut reads the value of "anything-but": a string, a number, a list of either, or one of four operators with a
// string or a list of strings.
func (c *compiler) anythingBut(v *node) (test, error) {
	t := anythingBut{text: `{"anything-but":` + c.text(v) + `}`}
	var err error
	if v.kind == kindObject {
		t.not, err = c.anythingButOperator(v)
	} else {
		t.not, err = c.anythingButValues(v)
	}
	return t, err
}

// text returns a value as it is written in the pattern.
func (c *compiler) text(v *node) string {
	start := v.at
	switch v.kind {
	case kindString, kindArray, kindObject:
		start--
	default:
		start -= len(v.text)
	}
	return string(c.source[start:v.end])
}

// listOf returns the elements of an array, or the value itself as the only element.
func listOf(v *node) []*node {
	if v.kind == kindArray {
		return v.items
	}
	return []*node{v}
}

func (c *compiler) anythingButValues(v *node) ([]test, error) {
	if v.kind == kindBool || v.kind == kindNull {
		return nil, c.fail(v.at, "Value of anything-but must be an array or single string/number value.")
	}
	var not []test
	var texts, numbers int
	for _, item := range listOf(v) {
		switch item.kind {
		case kindString:
			texts++
			not = append(not, exactString{want: item.text}) // no IP normalisation here, as in the reference engine
		case kindNumber:
			numbers++
			not = append(not, exactNumber{item.text, item.number})
		default:
			return nil, c.fail(item.at, "Inside anything but list, start|null|boolean is not supported.")
		}
	}
	if (texts == 0) == (numbers == 0) {
		return nil, c.fail(v.end, "Inside anything but list, either all values are number or string, mixed type is not supported")
	}
	return not, nil
}

func (c *compiler) anythingButOperator(v *node) ([]test, error) {
	if len(v.members) == 0 {
		return nil, c.fail(v.end, "Anything-But expression name not found")
	}
	op := v.members[0]
	switch op.key {
	case "equals-ignore-case", "prefix", "suffix", "wildcard":
	default:
		return nil, c.fail(op.at, "Unsupported anything-but pattern: %s", op.key)
	}
	if len(v.members) > 1 {
		return nil, c.fail(v.members[1].at, "Too many elements in numeric expression")
	}
	list := listOf(op.value)
	if k := op.value.kind; k != kindArray && k != kindString && k != kindNumber {
		return nil, c.fail(op.value.at, "Value of anything-but must be an array or single string/number value.")
	}
	if len(list) == 0 {
		// The reference engine accepts this and then matches everything, which no author intends.
		return nil, c.fail(op.value.end, "Empty arrays are not allowed")
	}
	var not []test
	for _, item := range list {
		t, err := c.anythingButString(op.key, item)
		if err != nil {
			return nil, err
		}
		not = append(not, t)
	}
	return not, nil
}

func (c *compiler) anythingButString(op string, item *node) (test, error) {
	isAffix := op == "prefix" || op == "suffix"
	switch {
	case item.kind == kindString && isAffix && item.text == "":
		return nil, c.fail(item.at, "Null prefix/suffix not allowed")
	case item.kind == kindString && isAffix:
		return affix{suffix: op == "suffix", text: item.text, want: item.text}, nil
	case item.kind == kindString && op == "wildcard":
		return c.wildcard(item)
	case item.kind == kindString:
		return newEqualFold(item.text), nil
	case isAffix:
		return nil, c.fail(item.at, "prefix/suffix match pattern must be a string")
	case op == "wildcard":
		return nil, c.fail(item.at, "wildcard match pattern must be a string")
	default:
		return nil, c.fail(item.at, "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported.")
	}
}
