// Command tally reads files with the output of `go test -json` and prints one row per
// file: the number of passed, failed and skipped tests. It fails if a test failed, if
// no test of a file passed, or if the list below does not allow a skip.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// allowed lists the tests that CI may skip, as package.Test, with the reason.
var allowed = map[string]string{}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// event has the fields of a `go test -json` line that this command needs.
type event struct {
	Action, Package, Test, ImportPath string
}

// counts has the test results of a file. Names are package.Test, or the package if it
// failed outside of its tests.
type counts struct {
	passed          int
	failed, skipped []string
}

func run(files []string, out io.Writer) error {
	if len(files) == 0 {
		return fmt.Errorf("no files to count: run `make test` first")
	}
	var all counts
	var problems []string
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("reading results: %w", err)
		}
		c, err := count(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		suite := strings.TrimSuffix(filepath.Base(name), ".json")
		fmt.Fprintf(out, "%-16s %6d passed %4d failed %4d skipped\n", suite, c.passed, len(c.failed), len(c.skipped))
		if c.passed == 0 {
			problems = append(problems, suite+": no test passed")
		}
		for _, test := range c.failed {
			problems = append(problems, suite+": failed "+test)
		}
		for _, test := range c.skipped {
			if allowed[test] == "" {
				problems = append(problems, suite+": skipped "+test)
			}
		}
		all.passed += c.passed
		all.failed = append(all.failed, c.failed...)
		all.skipped = append(all.skipped, c.skipped...)
	}
	for _, w := range problems {
		fmt.Fprintln(out, w)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", all.passed, len(all.failed), len(all.skipped))
	if len(problems) > 0 {
		return fmt.Errorf("%d problems: see above", len(problems))
	}
	return nil
}

func count(in io.Reader) (counts, error) {
	var c counts
	broken := map[string]bool{} // failed packages without a known failed test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return counts{}, fmt.Errorf("%q is not a line of `go test -json`: %w", lines.Text(), err)
		}
		c.add(e, broken)
	}
	for name := range broken {
		c.failed = append(c.failed, name)
	}
	slices.Sort(c.failed)
	slices.Sort(c.skipped)
	return c, lines.Err()
}

func (c *counts) add(e event, broken map[string]bool) {
	name := e.Package + "." + e.Test
	switch {
	case e.Test == "" && e.Action == "fail":
		if !slices.ContainsFunc(c.failed, func(f string) bool { return strings.HasPrefix(f, e.Package+".") }) {
			broken[e.Package] = true
		}
	case e.Test == "":
	case e.Action == "pass":
		c.passed++
	case e.Action == "fail":
		c.failed = append(c.failed, name)
	case e.Action == "skip":
		c.skipped = append(c.skipped, name)
	}
}
