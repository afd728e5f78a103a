package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	const passed = `{"Action":"pass","Package":"p","Test":"TestA"}`
	for name, tc := range map[string]struct {
		events []string
		wants  []string
		fails  bool
	}{
		"all pass": {
			events: []string{`{"Action":"run","Package":"p","Test":"TestA"}`, passed, `{"Action":"pass","Package":"p"}`},
			wants:  []string{"1 passed, 0 failed, 0 skipped\n"},
		},
		"one fails": {
			events: []string{passed, `{"Action":"fail","Package":"p","Test":"TestB"}`, `{"Action":"fail","Package":"p"}`},
			wants:  []string{"suite: failed p.TestB\n", "1 passed, 1 failed, 0 skipped\n"}, fails: true,
		},
		"a package does not compile": {
			events: []string{passed, `{"ImportPath":"q","Action":"build-fail"}`, `{"Action":"fail","Package":"q","FailedBuild":"q"}`},
			wants:  []string{"suite: failed q\n", "1 passed, 1 failed, 0 skipped\n"}, fails: true,
		},
		"a skip that is not allowed": {
			events: []string{passed, `{"Action":"skip","Package":"p","Test":"TestC"}`},
			wants:  []string{"suite: skipped p.TestC\n", "1 passed, 0 failed, 1 skipped\n"}, fails: true,
		},
		"a package without tests is no skip": {
			events: []string{passed, `{"Action":"skip","Package":"q"}`},
			wants:  []string{"1 passed, 0 failed, 0 skipped\n"},
		},
		"nothing ran": {wants: []string{"suite: no test passed\n"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "suite.json")
			if err := os.WriteFile(file, []byte(strings.Join(tc.events, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := run([]string{file}, &out); (err != nil) != tc.fails {
				t.Errorf("run() = %v, want an error: %t", err, tc.fails)
			}
			for _, want := range tc.wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output\n%s\nwant %q in it", out.String(), want)
				}
			}
		})
	}
}
