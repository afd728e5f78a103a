package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

const errorsPage = "../../docs/reference/errors.md"

func TestErrorsReferenceIsCurrent(t *testing.T) {
	var want strings.Builder
	want.WriteString(`# Errors of the CLI

<!-- go test ./internal/cli -run Reference -update writes this page from the code. -->

An error that the program knows ends with a link to a row of this page. The id is stable, so scripts can look for it on
standard error. [Check the AWS resources](../guides/doctor.md#findings) lists the findings of ` + "`lifeboat doctor`" + `.

| error | meaning | what to do |
|---|---|---|
`)
	for _, p := range command.Problems() {
		fmt.Fprintf(&want, "| <a id=\"%[1]s\"></a>`%[1]s` | %[2]s | %[3]s |\n", p.ID, p.Meaning, strings.ReplaceAll(p.Next, "\n", " "))
	}
	if *update {
		if err := os.WriteFile(errorsPage, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/reference/errors.md differs from the code: run go test ./internal/cli -run Reference -update\n%s", diff)
	}
}

func TestProblemsHaveDistinctIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range command.Problems() {
		if seen[p.ID] || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(p.ID) || p.Meaning == "" {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
	}
	if len(seen) < 20 {
		t.Errorf("only %d errors are known", len(seen))
	}
}

func TestKnownErrorEndsWithLink(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, twoNodes()...)}
	r := h.run(t.Context(), "plan", "ip-10-0-0-1.ec2.internal")
	want := "\nMore: https://github.com/lifeboat-dev/lifeboat/blob/main/docs/reference/errors.md#node-not-found\n"
	if !strings.HasSuffix(r.err, want) {
		t.Errorf("%q does not end with %q", r.err, want)
	}
	if r := h.run(t.Context(), "plan"); strings.Contains(r.err, "More: ") {
		t.Errorf("wrong usage has a link, and no row on the page: %q", r.err)
	}
}
