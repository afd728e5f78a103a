package emit

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// tfAddRelease adds the Helm release of a chart. It has the values that the other resources of the
// template determine; the variable of the module has the others, such as image.repository, and wins.
// A list of YAML texts is valid in versions 2 and 3 of the Helm provider, unlike its set argument.
func (t tf) tfAddRelease(r Role, document, resources object) {
	variable := t.label + "_chart_values"
	controller, after := "hostNetwork = false", "aws_eks_pod_identity_association."+t.label // the agent of Pod Identity serves the pod network
	if r.Identity == IRSA {
		controller = fmt.Sprintf(`serviceAccount = { annotations = { "eks.amazonaws.com/role-arn" = aws_iam_role.%s.arn } }`, t.label)
		after = "aws_iam_role_policy." + t.label
	}
	own := fmt.Sprintf("yamlencode({ aws = { queueURL = aws_sqs_queue.%s.id, region = %s, clusterName = %q }, controller = { %s } })",
		t.label, expression(t.w.Region), t.w.Cluster, controller)
	document["variable"] = object{variable: object{
		"description": "more values of Lifeboat's chart, as YAML texts; image.repository is required", "type": "list(string)",
	}}
	resources["helm_release"] = object{t.label: object{
		"name": "lifeboat", "namespace": iam.Namespace, "create_namespace": true, "chart": r.Chart, "wait": true,
		"values":     "${concat([" + own + "], var." + variable + ")}",
		"depends_on": []string{after, "aws_sqs_queue_policy." + t.label}, // a pod that starts before its role may act has no credentials
	}}
}

// expression returns a text of a template as an expression of HCL.
func expression(text string) string {
	if inner, ok := strings.CutPrefix(text, "${"); ok {
		return strings.TrimSuffix(inner, "}")
	}
	return fmt.Sprintf("%q", text)
}
