package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	const source = "https://example.com/blob/main/"
	tree := fstest.MapFS{"deploy/a.yaml": {}}
	for _, c := range []struct{ body, want string }{
		{`<a href="guides/b.html">`, ""},
		{`<a href="guides/b.html#two">`, ""},
		{`<a href="#here"></a><p id="here">`, ""},
		{`<img src="a.svg">`, ""},
		{`<a href="https://kubernetes.io/docs">`, ""},
		{`<a href="` + source + `deploy/a.yaml#L1">`, ""},
		{`<a href="` + source + `deploy/">`, ""},
		{`<a href="guides/c.html">`, "the site has no guides/c.html"},
		{`<a href="guides/b.html#three">`, `guides/b.html has no section "three"`},
		{`<a href="#there">`, `index.html has no section "there"`},
		{`<img src="b.svg">`, "the site has no b.svg"},
		{`<a href="` + source + `deploy/b.yaml">`, "not exist"},
		{`<a href="https:///docs">`, "no address of the web"},
		{`<a href="javascript:alert(1)">`, "no address of the web"},
		{`<p id="a"></p><p id="a"></p>`, `two elements have the id "a"`},
	} {
		s, err := read(fstest.MapFS{
			"index.html":    {Data: []byte(c.body)},
			"guides/b.html": {Data: []byte(`<h2 id="two"></h2><a href="../index.html">`)},
			"a.svg":         {},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(s.check(tree, source), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
	if _, err := read(fstest.MapFS{"a.html": {}}); err == nil || !strings.Contains(err.Error(), "make docs") {
		t.Errorf("a directory without a site: %v", err)
	}
}
