package pattern

import (
	"errors"
	"strings"
	"testing"
)

// vector is one behaviour measured on event-ruler, AWS's published reference engine. Events and values are JSON. A
// pattern or event that does not start with '{' is the value of field "a".
type vector struct {
	name    string
	pattern string
	yes     []string // events that match
	no      []string // events that do not
	err     string   // the reason for which the pattern is refused
}

const missing = `{"other":1}`

func wrapped(s string) string {
	if strings.HasPrefix(s, "{") {
		return s
	}
	return `{"a":` + s + `}`
}

func (v vector) run(t *testing.T) {
	t.Helper()
	p, err := Compile([]byte(wrapped(v.pattern)))
	if v.err != "" {
		wantSyntaxError(t, err, v.err)
		return
	}
	if err != nil {
		t.Fatalf("Compile(%s): %v", v.pattern, err)
	}
	for _, e := range v.yes {
		v.check(t, p, e, true)
	}
	for _, e := range v.no {
		v.check(t, p, e, false)
	}
}

func (v vector) check(t *testing.T, p *Pattern, event string, want bool) {
	t.Helper()
	got, err := p.Match([]byte(wrapped(event)))
	if err != nil {
		t.Fatalf("Match(%s): %v", event, err)
	}
	if got != want {
		t.Errorf("pattern %s, event %s: got %v, want %v", p, wrapped(event), got, want)
	}
	x, err := p.Explain([]byte(wrapped(event)))
	if err != nil {
		t.Fatalf("Explain(%s): %v", event, err)
	}
	if x.Matched != want || (len(x.Mismatches) == 0) != want {
		t.Errorf("pattern %s, event %s: explanation disagrees: %+v", p, wrapped(event), x)
	}
}

func wantSyntaxError(t *testing.T, err error, reason string) {
	t.Helper()
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("got error %v, want a *SyntaxError with reason %q", err, reason)
	}
	if syntax.Reason != reason {
		t.Errorf("got reason %q, want %q", syntax.Reason, reason)
	}
	if !strings.HasPrefix(err.Error(), "Event pattern is not valid. Reason: "+reason) {
		t.Errorf("error %q does not read as AWS's", err)
	}
}

func runAll(t *testing.T, vectors []vector) {
	t.Helper()
	for _, v := range vectors {
		t.Run(v.name, v.run)
	}
}

func TestExactValues(t *testing.T) {
	runAll(t, []vector{
		{name: "a number equals every spelling of its value", pattern: `[300]`, yes: []string{`300`, `300.0`, `3.0e2`}, no: []string{`"300"`, `301`, `null`}},
		{name: "a number written as float equals the integer", pattern: `[3.0e2]`, yes: []string{`300`, `300.00`}},
		{name: "numbers beyond float64 compare as written", pattern: `[1e400]`, yes: []string{`1e400`}, no: []string{`2e400`, `"1e400"`}},
		{name: "a string is exact", pattern: `["a"]`, yes: []string{`"a"`}, no: []string{`"A"`, `{"a":{}}`, `""`, `1`, missing}},
		{name: "a string is found in an array", pattern: `["a"]`, yes: []string{`["b","a"]`}, no: []string{`["b"]`}},
		{name: "nested arrays are flattened", pattern: `["a"]`, yes: []string{`[["a"]]`, `[[["x"],["a"]]]`}},
		{name: "escapes are resolved before comparing", pattern: `["a"]`, yes: []string{`"\u0061"`}},
		{name: "the empty string is a value", pattern: `[""]`, yes: []string{`""`}, no: []string{`null`, missing}},
		{name: "null is a value, and not absence", pattern: `[null]`, yes: []string{`null`, `[null]`}, no: []string{missing, `[]`, `"null"`}},
		{name: "true is neither a string nor 1", pattern: `[true]`, yes: []string{`true`}, no: []string{`"true"`, `1`, `false`}},
		{name: "an IPv4 literal equals its other spellings", pattern: `["10.0.0.1"]`, yes: []string{`"10.0.0.1"`, `"10.0.0.01"`}, no: []string{`"10.0.0.2"`, `"10.0.0.1 "`}},
		{name: "an IPv6 literal equals its expanded form", pattern: `["::1"]`, yes: []string{`"::1"`, `"0:0:0:0:0:0:0:1"`, `"0000:0000:0000:0000:0000:0000:0000:0001"`}, no: []string{`"::2"`}},
		{name: "an IPv4 address mapped into IPv6 is the IPv4 address", pattern: `["10.0.0.1"]`, yes: []string{`"::ffff:a00:1"`}},
		{name: "what only looks like an address is a string", pattern: `["10.0.0.300"]`, yes: []string{`"10.0.0.300"`}, no: []string{`"10.0.0.0300"`}},
		{name: "a scalar in place of an array matches", pattern: `{"resources":[{"prefix":"arn:aws:ec2"}]}`,
			yes: []string{`{"resources":"arn:aws:ec2:x"}`, `{"resources":["x","arn:aws:ec2:x"]}`}, no: []string{`{"resources":[]}`}},
	})
}

func TestOperators(t *testing.T) {
	runAll(t, []vector{
		{name: "the empty prefix takes any string, and only strings", pattern: `[{"prefix":""}]`, yes: []string{`""`, `"x"`}, no: []string{`1`, `null`, `true`, missing}},
		{name: "prefix ignoring case", pattern: `[{"prefix":{"equals-ignore-case":"EventB"}}]`, yes: []string{`"eventbridge"`}, no: []string{`"xeventb"`}},
		{name: "suffix", pattern: `[{"suffix":".png"}]`, yes: []string{`"a.png"`}, no: []string{`"a.PNG"`, `"a.png "`}},
		{name: "suffix ignoring case", pattern: `[{"suffix":{"equals-ignore-case":".png"}}]`, yes: []string{`"a.PnG"`}, no: []string{`"a.jpg"`}},
		{name: "equals-ignore-case", pattern: `[{"equals-ignore-case":"alice"}]`, yes: []string{`"ALICE"`}, no: []string{`"alice "`}},
		{name: "equals-ignore-case beyond ASCII", pattern: `[{"equals-ignore-case":"ÄΣ"}]`, yes: []string{`"äσ"`, `"äς"`}, no: []string{`"as"`}},
		{name: "a numeric range", pattern: `[{"numeric":[">",0,"<=",5]}]`, yes: []string{`1`, `5`, `5.0`, `[9,3]`}, no: []string{`"3"`, `0`, `null`, `5.1`, `[]`}},
		{name: "numeric equality", pattern: `[{"numeric":["=",3]}]`, yes: []string{`3`, `3.00`}, no: []string{`4`, `"3"`}},
		{name: "numeric with zeros at the ends", pattern: `[{"numeric":["=",0.50e1]}]`, yes: []string{`5`, `5.0`}},
		{name: "numeric zero", pattern: `[{"numeric":["=",-0.0]}]`, yes: []string{`0`}},
		{name: "numeric with one bound", pattern: `[{"numeric":[">=",3.018e2]}]`, yes: []string{`301.8`, `302`}, no: []string{`301.7`}},
		{name: "wildcard", pattern: `[{"wildcard":"a*c"}]`, yes: []string{`"ac"`, `"abc"`, `"abcbc"`}, no: []string{`5`, `null`, `"abcd"`, `"xabc"`}},
		{name: "wildcard pieces do not overlap", pattern: `[{"wildcard":"aba*aba"}]`, yes: []string{`"abaaba"`}, no: []string{`"aba"`, `"ababa"`}},
		{name: "an escaped asterisk is itself", pattern: `[{"wildcard":"a\\*b\\\\*"}]`, yes: []string{`"a*b\\"`, `"a*b\\xyz"`}, no: []string{`"aXb\\"`}},
		{name: "a lone wildcard takes any string", pattern: `[{"wildcard":"*"}]`, yes: []string{`""`, `"x"`}, no: []string{`1`}},
		{name: "cidr v4", pattern: `[{"cidr":"10.0.0.0/24"}]`, yes: []string{`"10.0.0.7"`, `"10.0.0.255"`}, no: []string{`"10.0.1.7"`, `"host"`, `"::1"`, `10`}},
		{name: "cidr v6", pattern: `[{"cidr":"2001:db8::/32"}]`, yes: []string{`"2001:db8::1"`}, no: []string{`"2001:db9::1"`, `"10.0.0.1"`}},
		{name: "exactly is a plain string", pattern: `[{"exactly":"10.0.0.1"}]`, yes: []string{`"10.0.0.1"`}, no: []string{`"10.0.0.01"`}},
		{name: "exists takes any leaf", pattern: `[{"exists":true}]`, yes: []string{`null`, `""`, `[1]`, `[[1]]`}, no: []string{missing, `[]`, `{"a":{"b":1}}`, `{"a":{}}`}},
		{name: "not exists", pattern: `[{"exists":false}]`, yes: []string{missing, `[]`, `{"a":{"b":1}}`}, no: []string{`null`, `""`, `[1]`}},
		{name: "not exists below a missing or scalar parent", pattern: `{"a":{"b":[{"exists":false}]}}`, yes: []string{missing, `1`, `{"a":[{"c":1}]}`}, no: []string{`{"a":{"b":1}}`}},
		{name: "not exists fails when any array element has it", pattern: `{"a":{"b":[{"exists":false}]}}`, no: []string{`{"a":[{"c":1},{"b":1}]}`}},
		{name: "not exists beside another alternative", pattern: `[{"exists":false},"x"]`, yes: []string{missing, `"x"`}, no: []string{`"y"`}},
	})
}

func TestAnythingBut(t *testing.T) {
	const numericErr = "Inside anything but list, either all values are number or string, mixed type is not supported"
	const kindErr = "Value of anything-but must be an array or single string/number value."
	runAll(t, []vector{
		{name: "takes any other value of any type", pattern: `[{"anything-but":"a"}]`, yes: []string{`"b"`, `5`, `null`, `["a","b"]`}, no: []string{`"a"`, `["a"]`, missing, `[]`, `{"a":{}}`}},
		{name: "of numbers", pattern: `[{"anything-but":[1,2]}]`, yes: []string{`3`, `"1"`}, no: []string{`1`, `2.0`}},
		{name: "of strings", pattern: `[{"anything-but":["a","b"]}]`, yes: []string{`"c"`}, no: []string{`"a"`, `"b"`}},
		{name: "of a prefix", pattern: `[{"anything-but":{"prefix":"init"}}]`, yes: []string{`"running"`, `5`}, no: []string{`"initiating"`}},
		{name: "of several suffixes", pattern: `[{"anything-but":{"suffix":[".txt",".rtf"]}}]`, yes: []string{`"a.png"`}, no: []string{`"a.txt"`, `"a.rtf"`}},
		{name: "ignoring case", pattern: `[{"anything-but":{"equals-ignore-case":["one","two"]}}]`, yes: []string{`"three"`}, no: []string{`"ONE"`, `"Two"`}},
		{name: "of wildcards", pattern: `[{"anything-but":{"wildcard":["*/lib/*","*/bin/*"]}}]`, yes: []string{`"/home/x"`}, no: []string{`"/usr/lib/x"`, `"/usr/bin/x"`}},
		{name: "of a value that is an address literal compares text", pattern: `[{"anything-but":"10.0.0.1"}]`, yes: []string{`"10.0.0.01"`}, no: []string{`"10.0.0.1"`}},
		{name: "a mixed list is refused", pattern: `[{"anything-but":["a",1]}]`, err: numericErr},
		{name: "an empty list is refused", pattern: `[{"anything-but":[]}]`, err: numericErr},
		{name: "null is refused", pattern: `[{"anything-but":null}]`, err: kindErr},
		{name: "a boolean is refused", pattern: `[{"anything-but":true}]`, err: kindErr},
		{name: "a boolean in a list is refused", pattern: `[{"anything-but":[true]}]`, err: "Inside anything but list, start|null|boolean is not supported."},
		{name: "a numeric object is refused", pattern: `[{"anything-but":{"numeric":["=",1]}}]`, err: "Unsupported anything-but pattern: numeric"},
		{name: "an empty prefix is refused", pattern: `[{"anything-but":{"prefix":""}}]`, err: "Null prefix/suffix not allowed"},
		{name: "an empty suffix is refused", pattern: `[{"anything-but":{"suffix":""}}]`, err: "Null prefix/suffix not allowed"},
		{name: "an empty suffix in a list is refused", pattern: `[{"anything-but":{"suffix":["x",""]}}]`, err: "Null prefix/suffix not allowed"},
		{name: "a list of wildcard objects is refused", pattern: `[{"anything-but":[{"wildcard":"a*"}]}]`, err: "Inside anything but list, start|null|boolean is not supported."},
		{name: "two operators are refused", pattern: `[{"anything-but":{"prefix":"a","suffix":"b"}}]`, err: "Too many elements in numeric expression"},
		{name: "an empty object is refused", pattern: `[{"anything-but":{}}]`, err: "Anything-But expression name not found"},
		{name: "an empty list of prefixes is refused", pattern: `[{"anything-but":{"prefix":[]}}]`, err: "Empty arrays are not allowed"},
		{name: "a number among prefixes is refused", pattern: `[{"anything-but":{"prefix":[1]}}]`, err: "prefix/suffix match pattern must be a string"},
		{name: "a number among wildcards is refused", pattern: `[{"anything-but":{"wildcard":1}}]`, err: "wildcard match pattern must be a string"},
	})
}

func TestRefusedPatterns(t *testing.T) {
	const tooMany = "Too many elements in numeric expression"
	runAll(t, []vector{
		{name: "exists with a string", pattern: `[{"exists":"true"}]`, err: "exists match pattern must be either true or false."},
		{name: "the upper bound first", pattern: `[{"numeric":["<",5,">",0]}]`, err: tooMany},
		{name: "equality and more", pattern: `[{"numeric":["=",5,"<",7]}]`, err: tooMany},
		{name: "an unknown numeric operator", pattern: `[{"numeric":["!=",3]}]`, err: "Unrecognized numeric range operator: !="},
		{name: "a numeric bound that is a string", pattern: `[{"numeric":[">","3"]}]`, err: "Value of > must be numeric"},
		{name: "numeric equality without a number", pattern: `[{"numeric":["="]}]`, err: "Value of equals must be numeric"},
		{name: "numeric that is not a list", pattern: `[{"numeric":3}]`, err: "Value of numeric must be an array."},
		{name: "numeric without an operator", pattern: `[{"numeric":[3]}]`, err: "Invalid member in numeric match: 3"},
		{name: "an empty numeric range", pattern: `[{"numeric":[">",5,"<",5]}]`, err: "Bottom must be less than top"},
		{name: "a bad second operator", pattern: `[{"numeric":[">",5,">",6]}]`, err: "Bad numeric range operator: >"},
		{name: "a number beyond float64", pattern: `[{"numeric":["=",1e309]}]`, err: "1e309 has more digits than numeric can compare"},
		{name: "a number with too many digits", pattern: `[{"numeric":["=",9007199254740993]}]`, err: "9007199254740993 has more digits than numeric can compare"},
		{name: "an upper bound with too many digits", pattern: `[{"numeric":[">",0,"<",0.12345678901234567890]}]`, err: "0.12345678901234567890 has more digits than numeric can compare"},
		{name: "a number too small for float64", pattern: `[{"numeric":["=",1e-999999999999999999999]}]`, err: "1e-999999999999999999999 has more digits than numeric can compare"},
		{name: "too many numeric terms", pattern: `[{"numeric":[">",5,"<",6,"<",7]}]`, err: "Too many terms in numeric range expression"},
		{name: "consecutive wildcards", pattern: `[{"wildcard":"a**c"}]`, err: "Consecutive wildcard characters at pos 2"},
		{name: "an unknown escape", pattern: `[{"wildcard":"a\\d"}]`, err: "Invalid escape character at pos 2"},
		{name: "an escape at the end", pattern: `[{"wildcard":"a\\"}]`, err: "Invalid escape character at pos 2"},
		{name: "a v4 mask of 32", pattern: `[{"cidr":"10.0.0.1/32"}]`, err: "IPv4 mask bits must be < 32"},
		{name: "a v6 mask of 128", pattern: `[{"cidr":"::1/128"}]`, err: "IPv6 mask bits must be < 128"},
		{name: "a cidr without mask", pattern: `[{"cidr":"10.0.0.1"}]`, err: "Malformed CIDR, one '/' required"},
		{name: "a cidr with a wordy mask", pattern: `[{"cidr":"10.0.0.1/x"}]`, err: "Malformed CIDR, mask bits must be an integer"},
		{name: "a cidr with a negative mask", pattern: `[{"cidr":"10.0.0.1/-1"}]`, err: "Malformed CIDR, mask bits must not be negative"},
		{name: "a cidr of a host name", pattern: `[{"cidr":"host/8"}]`, err: "Nonstandard IP address: host"},
		{name: "a scalar leaf", pattern: `{"a":"x"}`, err: `"a" must be an object or an array`},
		{name: "an empty array", pattern: `{"a":[]}`, err: "Empty arrays are not allowed"},
		{name: "an empty object", pattern: `{"a":{}}`, err: "Empty objects are not allowed"},
		{name: "an empty pattern object", pattern: `{}`, err: "Empty objects are not allowed"},
		{name: "an array within a leaf", pattern: `[[1]]`, err: "Match value must be String, number, true, false, or null"},
		{name: "an unknown operator", pattern: `[{"foo":"x"}]`, err: "Unrecognized match type foo"},
		{name: "two operators in one object", pattern: `[{"prefix":"x","suffix":"y"}]`, err: "Only one key allowed in match expression"},
		{name: "an operator object without operator", pattern: `[{}]`, err: "Match expression name not found"},
		{name: "a suffix given an array", pattern: `[{"suffix":["x"]}]`, err: "suffix match pattern must be a string"},
		{name: "a prefix given a number", pattern: `[{"prefix":1}]`, err: "prefix match pattern must be a string"},
		{name: "a prefix of an unknown kind", pattern: `[{"prefix":{"foo":"x"}}]`, err: "Unsupported prefix pattern: foo"},
		{name: "$or with one object", pattern: `{"$or":[{"a":[1]}]}`, err: "There must have at least 2 Objects in $or relationship."},
		{name: "$or that is not an array", pattern: `{"$or":{"a":[1]}}`, err: "There must have at least 2 Objects in $or relationship."},
		{name: "$or over values", pattern: `{"$or":[1,2]}`, err: "Only JSON object is allowed in array of $or relationship."},
		{name: "$or over an empty object", pattern: `{"$or":[{},{"a":[1]}]}`, err: "Empty objects are not allowed"},
	})
	for _, word := range strings.Fields("prefix suffix numeric exists cidr anything-but wildcard exactly equals-ignore-case " +
		"= < <= > >= regex not-wildcard date-after ip-address-in-range") {
		runAll(t, []vector{{name: "the reserved key " + word + " within $or", pattern: `{"$or":[{"` + word + `":["x"]},{"a":[1]}]}`,
			err: word + " is Ruler reserved fieldName which cannot be used inside $or."}})
	}
}

func TestNotAnObject(t *testing.T) {
	for _, p := range []string{`[1]`, `1`, `"a"`, `null`, ``, " \n"} {
		t.Run("refuses the pattern "+p, func(t *testing.T) {
			_, err := Compile([]byte(p))
			wantSyntaxError(t, err, "Filter is not an object")
		})
	}
}

func TestStructure(t *testing.T) {
	both := `{"a":{"x":[1],"y":[2]}}`
	runAll(t, []vector{
		{name: "two fields of one element match", pattern: both, yes: []string{`{"a":[{"x":1,"y":2}]}`, `{"a":{"x":1,"y":2}}`, `{"a":[{"x":9},{"x":1,"y":2}]}`}},
		{name: "fields of different elements do not combine", pattern: both, no: []string{`{"a":[{"x":1},{"y":2}]}`, `{"a":[{"x":1,"y":9},{"x":9,"y":2}]}`}},
		{name: "consistency holds through nested arrays", pattern: `{"a":{"b":{"x":[1],"y":[2]},"z":[3]}}`,
			yes: []string{`{"a":[{"b":[{"x":1},{"x":1,"y":2}],"z":3}]}`}, no: []string{`{"a":[{"b":[{"x":1,"y":2}]},{"z":3}]}`, `{"a":[{"b":[{"x":1},{"y":2}],"z":3}]}`}},
		{name: "independent arrays do not disturb each other", pattern: `{"a":{"x":[1]},"b":{"x":[1]}}`, yes: []string{`{"a":[{"x":1},{"x":2}],"b":[{"x":2},{"x":1}]}`}},
		{name: "absence is judged in the element that earlier fields chose", pattern: `{"a":{"x":[1],"y":[{"exists":false}]}}`,
			yes: []string{`{"a":[{"x":1},{"y":2}]}`}, no: []string{`{"a":[{"x":1,"y":2}]}`}},
		{name: "an element that serves a later absence is chosen over a field outside the array", pattern: `{"a":{"x":[1],"y":[{"exists":false}]}}`,
			yes: []string{`{"a.x":1,"a":[{"x":1},{"y":2}]}`}, no: []string{`{"a.x":1,"a":[{"y":2}]}`}},
		{name: "a dotted key is a path", pattern: `{"a.b":[1]}`, yes: []string{`{"a":{"b":1}}`, `{"a.b":1}`}, no: []string{`{"a":{"b":2}}`}},
		{name: "a nested pattern matches the dotted key", pattern: `{"a":{"b":[1]}}`, yes: []string{`{"a.b":1}`, `{"a":{"b":1}}`}},
		{name: "dots may fall anywhere", pattern: `{"a":{"b.c":[1]}}`, yes: []string{`{"a.b":{"c":1}}`, `{"a":{"b":{"c":1}}}`, `{"a.b.c":1}`, `{"a":{"b":2},"a.b":[{"c":1}]}`}},
		{name: "of duplicate keys the last wins", pattern: `{"a":[1],"a":[2]}`, yes: []string{`2`}, no: []string{`1`}},
		{name: "duplicate objects are merged by path", pattern: `{"a":{"x":[1]},"a":{"y":[2]}}`, yes: []string{`{"a":{"x":1,"y":2}}`}, no: []string{`{"a":{"y":2}}`}},
		{name: "empty keys are keys", pattern: `{"a":{"":[1]}}`, yes: []string{`{"a":{"":1}}`}, no: []string{`{"a":1}`}},
		{name: "an operator's name is an ordinary key outside $or", pattern: `{"prefix":["x"]}`, yes: []string{`{"prefix":"x"}`}},
		{name: "$or needs one of its objects", pattern: `{"s":["x"],"$or":[{"a":[1]},{"b":[2],"c":[3]}]}`,
			yes: []string{`{"s":"x","a":1}`, `{"s":"x","b":2,"c":3}`}, no: []string{`{"s":"x","b":2}`, `{"a":1}`}},
		{name: "$or below a key", pattern: `{"d":{"$or":[{"a":[1]},{"b":[2]}]}}`, yes: []string{`{"d":{"b":2}}`}, no: []string{`{"b":2}`}},
		{name: "$or within $or", pattern: `{"$or":[{"a":[1]},{"$or":[{"b":[2]},{"c":[3]}]}]}`, yes: []string{`{"c":3}`, `{"a":1}`}, no: []string{`{"c":2}`}},
		{name: "two $or multiply", pattern: `{"x":{"$or":[{"a":[1]},{"b":[2]}]},"y":{"$or":[{"c":[3]},{"d":[4]}]}}`, yes: []string{`{"x":{"b":2},"y":{"c":3}}`}, no: []string{`{"x":{"b":2}}`}},
		{name: "a field after $or overrides the choices' own", pattern: `{"$or":[{"a":[1]},{"b":[2]}],"a":[5]}`, yes: []string{`{"a":5}`}, no: []string{`{"a":1}`}},
		{name: "an unknown top-level key is accepted and never matches", pattern: `{"source":["aws.ec2"],"detailType":["x"]}`, no: []string{`{"source":"aws.ec2","detail-type":"x"}`}},
	})
}
