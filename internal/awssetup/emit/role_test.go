package emit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// The role of a template must have the policies that `lifeboat aws iam` prints.
func TestRoleHasPrintedPolicies(t *testing.T) {
	const issuer = "https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE"
	w := awssetup.Desired("prod", account, region)
	for identity, trust := range map[string]iam.Document{emit.PodIdentity: iam.PodIdentity(w), emit.IRSA: iam.WebIdentity(w, issuer)} {
		place := emit.Place{Account: account, Region: region, Role: emit.Role{Identity: identity, Issuer: issuer, Canary: true, EventHistory: true, LoadBalancers: true}}
		t.Run(identity+" CloudFormation", func(t *testing.T) {
			text := strings.NewReplacer(
				`{"Fn::GetAtt":["Queue","Arn"]}`, `"`+w.QueueARN()+`"`, `{"Fn::GetAtt":["DeadLetterQueue","Arn"]}`, `"`+w.DeadLetterARN()+`"`,
			).Replace(string(compact(t, emitted(t, emit.CloudFormation, place))))
			var file struct {
				Resources struct {
					ControllerRole struct {
						Properties struct {
							AssumeRolePolicyDocument json.RawMessage
							Policies                 []struct{ PolicyDocument json.RawMessage }
						}
					}
					PodIdentityAssociation *struct{}
				}
			}
			read(t, []byte(text), &file)
			role := file.Resources.ControllerRole.Properties
			equal(t, trust, role.AssumeRolePolicyDocument)
			equal(t, iam.ReadTargetHealth(iam.ReadEventHistory(iam.Controller(w, true), w), w), role.Policies[0].PolicyDocument)
			if got := file.Resources.PodIdentityAssociation != nil; got != (identity == emit.PodIdentity) {
				t.Errorf("an association of EKS Pod Identity: %t", got)
			}
		})
		t.Run(identity+" Terraform", func(t *testing.T) {
			text := strings.NewReplacer("${aws_sqs_queue.lifeboat_prod.arn}", w.QueueARN(), "${aws_sqs_queue.lifeboat_prod_dead_letter.arn}", w.DeadLetterARN()).
				Replace(string(emitted(t, emit.Terraform, place)))
			var file struct {
				Resource struct {
					Roles map[string]struct {
						AssumeRolePolicy string `json:"assume_role_policy"`
					} `json:"aws_iam_role"`
					Policies     map[string]struct{ Policy string } `json:"aws_iam_role_policy"`
					Associations map[string]struct{}                `json:"aws_eks_pod_identity_association"`
				}
			}
			read(t, []byte(text), &file)
			equal(t, trust, []byte(file.Resource.Roles["lifeboat_prod"].AssumeRolePolicy))
			equal(t, iam.ReadTargetHealth(iam.ReadEventHistory(iam.Controller(w, true), w), w), []byte(file.Resource.Policies["lifeboat_prod"].Policy))
			if got := len(file.Resource.Associations); (got == 1) != (identity == emit.PodIdentity) {
				t.Errorf("%d associations of EKS Pod Identity", got)
			}
		})
	}
}

func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	read(t, text, &v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, want iam.Document, got []byte) {
	t.Helper()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(compact(t, text)), string(compact(t, got))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The role of a template with groups may answer the hooks of these groups only.
func TestRoleIsLimitedToGroups(t *testing.T) {
	place := emit.Place{
		Account: account, Region: region, Role: emit.Role{Identity: emit.PodIdentity},
		Groups: []emit.Group{{Name: "web"}},
	}
	for name, write := range map[string]func(string, emit.Place) ([]byte, error){"CloudFormation": emit.CloudFormation, "Terraform": emit.Terraform} {
		text := string(emitted(t, write, place))
		if !strings.Contains(text, ":autoScalingGroupName/web") || strings.Contains(text, ":autoScalingGroupName/*") {
			t.Errorf("%s: the groups of the role are not only web:\n%s", name, text)
		}
	}
}
