package pattern

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func mustCompile(t testing.TB, pattern string) *Pattern {
	t.Helper()
	p, err := Compile([]byte(pattern))
	if err != nil {
		t.Fatalf("Compile(%s): %v", pattern, err)
	}
	return p
}

func mustDecode(t testing.TB, event string) *Event {
	t.Helper()
	e, err := Decode([]byte(event))
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return e
}

// A naive implementation needs hours, or the machine's memory, for each of these.
func TestHostileInputIsCheap(t *testing.T) {
	t.Run("wildcards that almost match", func(t *testing.T) {
		p := mustCompile(t, `{"a":[{"wildcard":"`+strings.Repeat("*a", 60)+`*b"}]}`)
		if p.MatchEvent(mustDecode(t, `{"a":"`+strings.Repeat("a", 1<<20)+`"}`)) {
			t.Error("matched")
		}
	})
	t.Run("many independent arrays, the last of which fails", func(t *testing.T) {
		var pattern, event []string
		for i := range 20 {
			pattern = append(pattern, fmt.Sprintf(`"k%02d":{"x":[1],"y":[1]}`, i))
			event = append(event, fmt.Sprintf(`"k%02d":[%s{"x":1,"y":1}]`, i, strings.Repeat(`{"x":1,"y":1},`, 500)))
		}
		p := mustCompile(t, `{`+strings.Join(pattern, ",")+`,"z":{"x":[1],"y":[1]}}`)
		if p.MatchEvent(mustDecode(t, `{`+strings.Join(event, ",")+`,"z":[{"x":1},{"y":1}]}`)) {
			t.Error("matched")
		}
	})
	t.Run("one array as large as an event may be", func(t *testing.T) {
		p := mustCompile(t, `{"a":{"x":[1],"y":[1],"z":[1]}}`)
		elements := strings.Repeat(`{"x":1,"y":1},`, 70_000)
		if p.MatchEvent(mustDecode(t, `{"a":[`+elements+`{"z":1}]}`)) {
			t.Error("matched")
		}
		if !p.MatchEvent(mustDecode(t, `{"a":[`+elements+`{"x":1,"y":1,"z":1}]}`)) {
			t.Error("did not match")
		}
	})
	t.Run("a path of dots in an object of many keys", func(t *testing.T) {
		p := mustCompile(t, `{"`+strings.Repeat(".", 2000)+`":[1]}`)
		var keys []string
		for i := range 5000 {
			keys = append(keys, `"`+strings.Repeat(".", i%2000)+fmt.Sprint(i)+`":1`)
		}
		if p.MatchEvent(mustDecode(t, `{`+strings.Join(keys, ",")+`}`)) {
			t.Error("matched")
		}
	})
	t.Run("a thousand combinations", func(t *testing.T) {
		ten := `"$or":[` + strings.TrimSuffix(strings.Repeat(`{"k":["x"]},`, 10), ",") + `]`
		p := mustCompile(t, `{"a":{`+ten+`},"b":{`+ten+`},"c":{`+ten+`}}`)
		e := mustDecode(t, `{"a":[`+strings.Repeat(`{"k":"x"},`, 1000)+`1],"b":{"k":"x"}}`)
		if p.MatchEvent(e) || p.ExplainEvent(e).Matched {
			t.Error("matched")
		}
	})
}

func TestDecode(t *testing.T) {
	for _, e := range []string{`[]`, `1`, `null`, `"x"`} {
		if _, err := Decode([]byte(e)); !errors.Is(err, ErrNotObject) {
			t.Errorf("Decode(%s): got %v", e, err)
		}
	}
	for _, e := range []string{``, `{`, `{"a":}`, `{} {}`, `{"a":"` + "\xfe" + `"}`} {
		if _, err := Decode([]byte(e)); err == nil || !strings.Contains(err.Error(), "reading event: at byte ") {
			t.Errorf("Decode(%q): got %v", e, err)
		}
	}
	if _, err := Decode([]byte(`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`)); err == nil {
		t.Error("an event nested too deeply is accepted")
	}
	if e := mustDecode(t, `{"a":1,"a":2}`); !mustCompile(t, `{"a":[2]}`).MatchEvent(e) || mustCompile(t, `{"a":[1]}`).MatchEvent(e) {
		t.Error("the last of duplicate keys in an event must win")
	}
}

func TestMatchReportsUnreadableEvents(t *testing.T) {
	p := mustCompile(t, `{"a":[1]}`)
	if _, err := p.Match([]byte(`[`)); err == nil {
		t.Error("Match accepted invalid JSON")
	}
	if _, err := p.Explain([]byte(`[]`)); !errors.Is(err, ErrNotObject) {
		t.Errorf("Explain: %v", err)
	}
}
