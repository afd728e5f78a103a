package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// The exceptions are reasons that only conditions or Kubernetes Events use.
func TestEveryReasonCanBeNotifiedOn(t *testing.T) {
	elsewhere := []string{"ReasonReported", "ReasonMissingFromQueue", "ReasonWaiting", "ReasonPodsRemaining", "ReasonValid",
		"ReasonRecorded", "ReasonInstanceMismatch", "ReasonInstanceClaimedTwice", "ReasonOutOfService", "ReasonBackInService",
		"ReasonWiringRepaired", "ReasonNoProviderID", "ReasonNodeWriteRefused", "ReasonPodWriteRefused", "ReasonStatusWriteRefused",
		"ReasonNodeClaimWriteRefused", "ReasonJobWriteRefused", "ReasonTerminationRefused", "ReasonRequestsAccepted"}
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1beta1/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			reasons[spec.Names[0].Name], err = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
		}
		return true
	})
	for _, name := range elsewhere {
		if _, ok := reasons[name]; !ok {
			t.Errorf("there is no %s any more", name)
		}
		delete(reasons, name)
	}
	want := slices.Sorted(maps.Values(reasons))
	if got := policy.TimelineReasons(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n(in TimelineReasons, or above where no timeline has it)", got, want)
	}
}
