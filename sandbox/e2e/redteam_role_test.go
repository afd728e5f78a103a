//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// clusterTag is on all instances of the cluster. The policy of the controller's role asks for it.
const clusterTag = "kubernetes.io/cluster/sandbox"

// notAuthorized reports whether IAM or the policy of a resource refused a call.
func notAuthorized(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}, api.ErrorCode())
}

// role has the credentials of the controller's IAM role, and tries what its policy must not allow.
func (r *redTeam) role() attacker {
	cfg, err := r.ControllerAWSConfig()
	if err != nil {
		r.t.Fatal(err)
	}
	queues, bus, machines, groups := awssqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), awsec2.NewFromConfig(cfg), autoscaling.NewFromConfig(cfg)
	st := r.State()
	foreign := r.foreignInstances()
	var acts []act
	add := func(name string, do func(ctx context.Context, rnd *rand.Rand) error) {
		acts = append(acts, act{name: name, refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			err := do(ctx, rnd)
			if err != nil && !notAuthorized(err) && ctx.Err() == nil {
				r.t.Errorf("controller's role: %s: want a refusal by IAM: %v", name, err)
			}
			return err
		}})
	}
	add("terminates an instance outside the cluster", func(ctx context.Context, rnd *rand.Rand) error {
		_, err := machines.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{foreign[rnd.IntN(len(foreign))].ID}})
		return err
	})
	add("launches an instance", func(ctx context.Context, _ *rand.Rand) error {
		_, err := machines.RunInstances(ctx, &awsec2.RunInstancesInput{ImageId: aws.String("ami-0123456789abcdef0"), MinCount: aws.Int32(1), MaxCount: aws.Int32(1)})
		return err
	})
	add("sends to its own queue", func(ctx context.Context, rnd *rand.Rand) error {
		_, err := queues.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &st.QueueURL, MessageBody: aws.String(fmt.Sprint(rnd.Uint32()))})
		return err
	})
	add("changes the policy of its queue", func(ctx context.Context, _ *rand.Rand) error {
		_, err := queues.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &st.QueueURL, Attributes: map[string]string{"Policy": ""}})
		return err
	})
	add("deletes its queue", func(ctx context.Context, _ *rand.Rand) error {
		_, err := queues.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: &st.QueueURL})
		return err
	})
	add("deletes a rule", func(ctx context.Context, rnd *rand.Rand) error {
		rules := r.Wiring().Rules
		_, err := bus.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &rules[rnd.IntN(len(rules))].Name})
		return err
	})
	add("takes over a group by its tag", func(ctx context.Context, _ *rand.Rand) error {
		_, err := groups.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{
			Key: aws.String(clusterTag), Value: aws.String("owned"), ResourceId: aws.String("databases"), ResourceType: aws.String("auto-scaling-group"),
		}}})
		return err
	})
	onGroups := r.roleOnGroups(groups)
	for _, name := range slices.Sorted(maps.Keys(onGroups)) {
		add(name, onGroups[name])
	}
	return attacker{"controller's role", acts}
}

// foreignInstances are one of another cluster, one without tags, and one of the control plane.
func (r *redTeam) foreignInstances() []ec2.Instance {
	r.t.Helper()
	var all []ec2.Instance
	for _, tags := range []map[string]string{
		{"kubernetes.io/cluster/other": "owned"}, {}, {clusterTag: "owned", "k8s.io/role/control-plane": "1"},
	} {
		in, err := r.EC2().Launch(ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Tags: tags})
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, in...)
	}
	return all
}

// token has the controller's token, and tries what RBAC and the admission policies must refuse.
func (r *redTeam) token() attacker {
	c := r.as("system:serviceaccount:"+chart.Namespace+":"+chart.ControllerAccount, "system:serviceaccounts", "system:serviceaccounts:"+chart.Namespace)
	const merge = "application/merge-patch+json"
	bystander := func(rnd *rand.Rand) string { return r.bystanders[rnd.IntN(len(r.bystanders))].PrivateDNSName }
	pod := func(ctx context.Context, patch string) error {
		pods := r.podsOn(r.bystanders[0])
		if len(pods) == 0 {
			return errNothingToDo
		}
		return c.Patch(ctx, &pods[0], client.RawPatch(merge, []byte(patch)))
	}
	return attacker{"controller's token", []act{
		{name: "reads Secrets", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			return c.List(ctx, &corev1.SecretList{})
		}},
		{name: "changes the image of a pod", refused: true, do: func(ctx context.Context, _ *rand.Rand) error {
			return pod(ctx, `{"spec":{"containers":[{"name":"main","image":"evil"}]}}`)
		}},
		{name: "changes a label of a pod", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return pod(ctx, fmt.Sprintf(`{"metadata":{"labels":{"app":"x%d"}}}`, rnd.Uint32()))
		}},
		{name: "changes a label of a node", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: bystander(rnd)}}
			return c.Patch(ctx, node, client.RawPatch(merge, fmt.Appendf(nil, `{"metadata":{"labels":{"pool":"x%d"}}}`, rnd.Uint32())))
		}},
		{name: "runs a Job in Lifeboat's namespace", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			spec := template(nil, 0)
			spec.Spec.RestartPolicy = corev1.RestartPolicyNever
			return c.Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: fmt.Sprint("job-", rnd.Uint32())}, Spec: batchv1.JobSpec{Template: spec},
			})
		}},
		{name: "writes a policy", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, &v1beta1.InterruptionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("own-", rnd.Uint32())},
				Spec:       v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionTerminate}}},
			})
		}},
		{name: "becomes cluster-admin", refused: true, do: func(ctx context.Context, rnd *rand.Rand) error {
			return c.Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("admin-", rnd.Uint32())},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: chart.Namespace, Name: chart.ControllerAccount}},
			})
		}},
	}}
}

// checkRoleSuffices checks that IAM refused no call that lifeboatd made.
func (r *redTeam) checkRoleSuffices() {
	r.t.Helper()
	text, err := os.ReadFile(r.LifeboatLog())
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "is not authorized to perform") {
			r.t.Errorf("lifeboatd lacks a permission: %s", line)
		}
	}
}
