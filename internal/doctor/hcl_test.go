package doctor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// osDisk reads the disk.
type osDisk struct{}

func (osDisk) ReadFile(name string) ([]byte, error)       { return os.ReadFile(name) }
func (osDisk) ReadDir(name string) ([]os.DirEntry, error) { return os.ReadDir(name) }

// readHCL diagnoses a configuration.
func readHCL(t *testing.T, given template.Given, names ...string) []finding.Finding {
	t.Helper()
	given.Disk = osDisk{}
	var files []template.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, template.File{Name: name, Data: data})
	}
	s, err := template.Read(files, given)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Run(s, awssetup.Desired("", s.Account, s.Region), doctor.Cluster{})
}

// uncoveredAside are the ids of the findings, without those about kinds that the wiring
// leaves out on purpose.
func uncoveredAside(all []finding.Finding) string {
	var got []string
	for _, f := range all {
		if f.ID != "kind-uncovered" {
			got = append(got, f.ID)
		}
	}
	slices.Sort(got)
	return strings.Join(slices.Compact(got), " ")
}

// The configurations of other tools are judged as their JSON is.
func TestConfigurationsOfOthers(t *testing.T) {
	here := template.Given{Account: "123456789012"}
	const settings = "dead-letter-missing pattern-noise queue-policy-open queue-retention-short target-dead-letter-missing"
	for name, tc := range map[string]struct {
		given template.Given
		files []string
		want  string
	}{
		"a module in the shape of Karpenter's":              {template.Given{}, []string{"testdata/hcl/karpenter/main.tf"}, settings},
		"a module in the shape of Karpenter's, by its name": {template.Given{}, []string{"testdata/hcl/karpenter/modules/karpenter/main.tf", "testdata/hcl/karpenter/modules/karpenter/variables.tf"}, settings},
		"the wiring of Node Termination Handler":            {template.Given{}, []string{"testdata/hcl/nth/main.tf"}, settings},
		"the output of kOps":                                {here, []string{"testdata/hcl/kops/kubernetes.tf"}, settings},
		"the output of kOps, in an account that is not known": {template.Given{}, []string{"testdata/hcl/kops/kubernetes.tf"},
			"dead-letter-missing pattern-noise queue-policy-unread queue-retention-short target-dead-letter-missing"},
	} {
		all := readHCL(t, tc.given, tc.files...)
		if got := uncoveredAside(all); got != tc.want || finding.Has(all, finding.Broken) {
			t.Errorf("%s: %s, want %s\n%s", name, got, tc.want, text(all))
		}
	}
}

// An edit of kOps' files is overwritten, so the fix says what lasts.
func TestFixForKOpsLasts(t *testing.T) {
	for _, f := range readHCL(t, template.Given{}, "testdata/hcl/kops/kubernetes.tf") {
		if strings.Contains(f.Fix, "kubernetes.tf") && !strings.Contains(f.Fix, "lifeboat aws setup --cluster k8s.example.com, then set spec.nodeTerminationHandler.enabled to false") {
			t.Errorf("%s: %s", f.ID, f.Fix)
		}
		if slices.Contains(f.Kinds, "RebalanceRecommendation") && !strings.Contains(f.Fix, "spec.nodeTerminationHandler.enableRebalanceDraining") {
			t.Errorf("%s: %s", f.ID, f.Fix)
		}
	}
}

// A module that is not on disk may have the rules.
func TestMissingModuleIsUnknown(t *testing.T) {
	name := t.TempDir() + "/main.tf"
	if err := os.WriteFile(name, []byte("module \"karpenter\" {\n  source = \"terraform-aws-modules/eks/aws//modules/karpenter\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := readHCL(t, template.Given{}, name)
	if len(all) != 1 || all[0].ID != "not-understood" || !strings.Contains(all[0].Fix, "terraform init") {
		t.Error(text(all))
	}
	// terraform init records where the module is.
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	installed := strings.TrimSuffix(name, "main.tf") + ".terraform/modules"
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", strings.Count(name, "/"))
	manifest := `{"Modules":[{"Key":"karpenter","Dir":"` + up + strings.TrimPrefix(dir, "/") + `/testdata/hcl/karpenter/modules/karpenter"}]}`
	if err := os.WriteFile(installed+"/modules.json", []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := uncoveredAside(readHCL(t, template.Given{}, name)); !strings.Contains(got, "queue-retention-short") {
		t.Errorf("after terraform init: %s", got)
	}
}
