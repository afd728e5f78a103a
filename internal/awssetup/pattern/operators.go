package pattern

import (
	"math"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// test is one alternative of a leaf.
type test interface {
	// holds reports whether a scalar of the event satisfies the alternative.
	holds(v *node) bool
	// String returns the alternative as JSON.
	String() string
}

// exactString is "a". An IP address literal matches every notation of the same address.
type exactString struct {
	want string
	ip   netip.Addr // valid when want is an IP literal and the pattern compares addresses
}

func (t exactString) holds(v *node) bool {
	if v.kind != kindString {
		return false
	}
	if v.text == t.want {
		return true
	}
	return t.ip.IsValid() && parseIP(v.text) == t.ip
}
func (t exactString) String() string { return quote(t.want) }

// exactNumber is 300, equal to 300.0 and 3e2: numbers compare as float64, and beyond its range as written.
type exactNumber struct {
	text  string
	value float64
}

func (t exactNumber) holds(v *node) bool {
	return v.kind == kindNumber && (v.text == t.text || (v.number == t.value && finite(v.number)))
}
func (t exactNumber) String() string { return t.text }

// finite reports whether a float64 is neither infinite nor NaN.
func finite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

// keyword is true, false or null.
type keyword struct {
	kind kind
	text string
}

func (t keyword) holds(v *node) bool { return v.kind == t.kind && v.text == t.text }
func (t keyword) String() string     { return t.text }

// affix is prefix or suffix, for strings only; with fold it ignores case.
type affix struct {
	suffix, fold bool
	text         string
	want         string // text, folded when fold is set
}

func (t affix) holds(v *node) bool {
	if v.kind != kindString {
		return false
	}
	s := v.text
	if t.fold {
		s = foldCase(s)
	}
	if t.suffix {
		return strings.HasSuffix(s, t.want)
	}
	return strings.HasPrefix(s, t.want)
}

func (t affix) String() string {
	value := quote(t.text)
	if t.fold {
		value = `{"equals-ignore-case":` + value + `}`
	}
	return `{"` + t.name() + `":` + value + `}`
}

func (t affix) name() string {
	if t.suffix {
		return "suffix"
	}
	return "prefix"
}

// equalFold is equals-ignore-case.
type equalFold struct{ text, want string }

func (t equalFold) holds(v *node) bool { return v.kind == kindString && foldCase(v.text) == t.want }
func (t equalFold) String() string     { return `{"equals-ignore-case":` + quote(t.text) + `}` }

// foldCase maps every rune to one representative of its case variants, so that folded strings can be compared with
// ==.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}
		// The orbit of SimpleFold is a cycle. Its smallest member is the representative, in lower case if it is
		// ASCII.
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A'
		}
		return least
	}, s)
}

// wildcard is {"wildcard":"a*b"}: literals that must appear in this order, the first at the start, the last at the
// end. The earliest position of each is sufficient, so matching is linear in the text for each literal.
type wildcard struct {
	text     string
	literals []string // one more than there are wildcards
}

func (t wildcard) holds(v *node) bool {
	if v.kind != kindString {
		return false
	}
	first, last := t.literals[0], t.literals[len(t.literals)-1]
	if len(t.literals) == 1 {
		return v.text == first
	}
	if len(v.text) < len(first)+len(last) || !strings.HasPrefix(v.text, first) || !strings.HasSuffix(v.text, last) {
		return false
	}
	rest := v.text[len(first) : len(v.text)-len(last)]
	for _, literal := range t.literals[1 : len(t.literals)-1] {
		i := strings.Index(rest, literal)
		if i < 0 {
			return false
		}
		rest = rest[i+len(literal):]
	}
	return true
}
func (t wildcard) String() string { return `{"wildcard":` + quote(t.text) + `}` }

// numeric is {"numeric":[…]}: a range whose ends can be open or missing. Equality is a range of one number.
type numeric struct {
	text             string
	hasLow, hasHigh  bool
	low, high        float64
	openLow, openTop bool
}

func (t numeric) holds(v *node) bool {
	if v.kind != kindNumber {
		return false
	}
	if t.hasLow && (v.number < t.low || t.openLow && v.number == t.low) {
		return false
	}
	return !t.hasHigh || v.number < t.high || !t.openTop && v.number == t.high
}
func (t numeric) String() string { return t.text }

// cidr is {"cidr":"10.0.0.0/24"}.
type cidr struct {
	text  string
	block netip.Prefix
}

func (t cidr) holds(v *node) bool {
	return v.kind == kindString && t.block.Contains(parseIP(v.text))
}
func (t cidr) String() string { return `{"cidr":` + quote(t.text) + `}` }

// present is {"exists":true}: it matches any scalar.
type present struct{}

func (present) holds(*node) bool { return true }
func (present) String() string   { return `{"exists":true}` }

// absent is {"exists":false}: it never matches a value, only an absent field (see matcher).
type absent struct{}

func (absent) holds(*node) bool { return false }
func (absent) String() string   { return `{"exists":false}` }

// anythingBut matches every scalar of any type that none of the tests matches.
type anythingBut struct {
	text string
	not  []test
}

func (t anythingBut) holds(v *node) bool {
	for _, n := range t.not {
		if n.holds(v) {
			return false
		}
	}
	return true
}
func (t anythingBut) String() string { return t.text }

// parseIP parses an IP address literal, or returns the zero Addr. It reads leading zeros as decimal ("10.0.0.01") and
// IPv4-mapped IPv6 as IPv4, and refuses zones and mixed notation, as the reference engine does.
func parseIP(s string) netip.Addr {
	if len(s) < 2 || len(s) > 64 {
		return netip.Addr{}
	}
	if strings.IndexByte(s, ':') >= 0 {
		if strings.ContainsAny(s, ".%") {
			return netip.Addr{}
		}
		a, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Addr{}
		}
		return a.Unmap()
	}
	return parseIPv4(s)
}

func parseIPv4(s string) netip.Addr {
	var b [4]byte
	part, digits, value := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			if value = value*10 + int(c-'0'); value > 255 {
				return netip.Addr{}
			}
			digits++
			b[part] = byte(value) //nolint:gosec // G115: at most 255, as checked above
		case c == '.' && digits > 0 && part < 3:
			part, digits, value = part+1, 0, 0
		default:
			return netip.Addr{}
		}
	}
	if part != 3 || digits == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4(b)
}
