package emit_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
)

// The release must have values that the chart knows, and come after what it needs.
func TestTerraformInstallsChart(t *testing.T) {
	for _, c := range []struct {
		place  emit.Place
		after  string
		values []string
	}{
		{
			emit.Place{Role: emit.Role{Identity: emit.PodIdentity}}, "aws_eks_pod_identity_association.lifeboat_prod",
			[]string{"aws.clusterName", "aws.queueURL", "aws.region", "controller.hostNetwork"},
		},
		{
			emit.Place{Account: account, Region: region, Role: emit.Role{Identity: emit.IRSA, Issuer: "https://oidc.example"}}, "aws_iam_role_policy.lifeboat_prod",
			[]string{"aws.clusterName", "aws.queueURL", "aws.region", "controller.serviceAccount.annotations"},
		},
	} {
		t.Run(c.place.Role.Identity, func(t *testing.T) {
			c.place.Role.Chart = "oci://registry.example/charts/lifeboat"
			var file struct {
				Variable map[string]struct{ Type string }
				Resource struct {
					Releases map[string]struct {
						Chart, Namespace, Values string
						DependsOn                []string `json:"depends_on"`
					} `json:"helm_release"`
				}
			}
			read(t, emitted(t, emit.Terraform, c.place), &file)
			release := file.Resource.Releases["lifeboat_prod"]
			if release.Chart != c.place.Role.Chart || release.Namespace != "lifeboat-system" || !slices.Contains(release.DependsOn, c.after) ||
				file.Variable["lifeboat_prod_chart_values"].Type != "list(string)" {
				t.Errorf("%+v, variables %+v", release, file.Variable)
			}
			paths := valuePaths(t, release.Values)
			if !slices.Equal(paths, c.values) {
				t.Errorf("values %q, want %q: %s", paths, c.values, release.Values)
			}
			known := chartValues(t)
			for _, path := range paths {
				if !known(path) {
					t.Errorf("the chart has no value %s", path)
				}
			}
		})
	}
}

// valuePaths returns the paths of the values in a template of HCL, sorted.
func valuePaths(t *testing.T, template string) []string {
	t.Helper()
	parsed, diags := hclsyntax.ParseTemplate([]byte(template), "values", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var paths []string
	var collect func(prefix string, object *hclsyntax.ObjectConsExpr)
	collect = func(prefix string, object *hclsyntax.ObjectConsExpr) {
		for _, item := range object.Items {
			path := prefix + hcl.ExprAsKeyword(item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr).Wrapped)
			inner, nested := item.ValueExpr.(*hclsyntax.ObjectConsExpr)
			if nested && !strings.HasSuffix(path, "annotations") {
				collect(path+".", inner)
			} else {
				paths = append(paths, path)
			}
		}
	}
	diags = hclsyntax.VisitAll(parsed.(hclsyntax.Node), func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "yamlencode" {
			collect("", call.Args[0].(*hclsyntax.ObjectConsExpr))
		}
		return nil
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	slices.Sort(paths)
	return paths
}

// chartValues returns whether the chart has a value.
func chartValues(t *testing.T) func(path string) bool {
	t.Helper()
	text, err := os.ReadFile("../../../charts/lifeboat/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return func(path string) bool {
		values := any(all)
		for _, key := range strings.Split(path, ".") {
			inner, _ := values.(map[string]any)
			value, ok := inner[key]
			if !ok {
				return false
			}
			values = value
		}
		return true
	}
}
