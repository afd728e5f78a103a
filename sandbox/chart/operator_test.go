//go:build e2e

package chart_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const alice, bob = "alice@example.com", "bob@example.com"

// notices is the refusal of other fields than those of an operator.
const notices = "you may write only spec.approval, spec.hold and spec.released, and request a drain"

// grant gives a user a permission.
func grant(t *testing.T, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"}, Rules: []rbacv1.PolicyRule{rule}}
	if err := admin(t).Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, role) })
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}
	if err := admin(t).Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, binding) })
}

// operator is a user with the chart's role for operators.
func operator(t *testing.T, name string) *rest.Config {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lifeboat-operator"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}},
	}
	if err := admin(t).Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, binding) })
	config := rest.CopyConfig(cluster)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	until(t, "the role of "+name, func() (bool, error) {
		err := clientOf(t, config).List(t.Context(), &v1beta1.InterruptionList{})
		return err == nil, err
	})
	return config
}

func TestAuthorsCannotBeForged(t *testing.T) {
	c := clientOf(t, operator(t, alice))
	plain, held := record("i-plain", "node-a", newNotice("1", "sqs")), record("i-held", "node-a", newNotice("1", "sqs"))
	bobs := operator(t, bob)
	for _, r := range []*v1beta1.Interruption{plain, held} {
		if err := admin(t).Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, r) })
	}
	until(t, "the policy to be in force", func() (bool, error) {
		err := patch(t, c, plain, func(r *v1beta1.Interruption) { r.Spec.Hold = word(bob) })
		return err != nil, err
	})
	before := held.DeepCopy()
	held.Spec.Hold, held.Spec.Approval = word(bob), word(bob)
	check(t, clientOf(t, bobs).Patch(t.Context(), held, client.MergeFrom(before)), "")

	for name, test := range map[string]struct {
		record *v1beta1.Interruption
		edit   func(*v1beta1.Interruption)
		want   string
	}{
		"approves":                       {plain, func(r *v1beta1.Interruption) { r.Spec.Approval = word(alice) }, ""},
		"holds":                          {plain, func(r *v1beta1.Interruption) { r.Spec.Hold = word(alice) }, ""},
		"approves as another user":       {plain, func(r *v1beta1.Interruption) { r.Spec.Approval = word(bob) }, `spec.approval.by is "bob@example.com", and you are "alice@example.com": act only in your own name; use ` + "`lifeboat approve`"},
		"holds as another user":          {plain, func(r *v1beta1.Interruption) { r.Spec.Hold = word(bob) }, "use `lifeboat hold`"},
		"releases as another user":       {held, func(r *v1beta1.Interruption) { r.Spec.Hold, r.Spec.Released = nil, word(bob) }, "use `lifeboat release`"},
		"releases another user's":        {held, func(r *v1beta1.Interruption) { r.Spec.Hold, r.Spec.Released = nil, word(alice) }, ""},
		"removes another user's hold":    {held, func(r *v1beta1.Interruption) { r.Spec.Hold = nil }, ""},
		"takes an approval back":         {held, func(r *v1beta1.Interruption) { r.Spec.Approval = nil }, ""},
		"holds longer than the other":    {held, func(r *v1beta1.Interruption) { r.Spec.Hold = word(alice) }, ""},
		"puts words into another's hold": {held, func(r *v1beta1.Interruption) { r.Spec.Hold.Note = "do not wait for me" }, `spec.hold.by is "bob@example.com"`},
		"turns an approval to another":   {held, func(r *v1beta1.Interruption) { r.Spec.Approval.About = "RebalanceRecommendation" }, `spec.approval.by is "bob@example.com"`},
	} {
		t.Run(name, func(t *testing.T) { check(t, patch(t, c, test.record, test.edit), test.want) })
	}
	for name, test := range map[string]struct {
		edit func(*v1beta1.Interruption)
		want string
	}{
		"adds a notice":          {func(r *v1beta1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("2", "sqs")) }, notices},
		"withdraws a notice":     {func(r *v1beta1.Interruption) { r.Spec.Notices[0].Withdrawn = true }, notices},
		"moves it to a node":     {func(r *v1beta1.Interruption) { r.Spec.NodeName = "node-b" }, notices},
		"with a word of its own": {func(r *v1beta1.Interruption) { r.Spec.NodeName, r.Spec.Hold = "node-b", word(alice) }, notices},
		"has it deleted":         {func(r *v1beta1.Interruption) { r.OwnerReferences = owners("v1", "ConfigMap") }, "may not change the finalizers or the owners"},
		"keeps it permanently":   {func(r *v1beta1.Interruption) { r.Finalizers = []string{"example.com/kept"} }, "may not change the finalizers or the owners"},
	} {
		t.Run("an operator "+name, func(t *testing.T) { check(t, patch(t, c, plain, test.edit), test.want) })
	}
	t.Run("an operator who may write notices adds one", func(t *testing.T) {
		grant(t, alice, rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupVersion.Group}, Resources: []string{"interruptions/notices"}, Verbs: []string{"update"}})
		until(t, "the permission", func() (bool, error) {
			err := patch(t, c, plain, func(r *v1beta1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("2", "sqs")) })
			return err == nil, err
		})
	})
	t.Run("others write beside what was said", func(t *testing.T) {
		add := func(r *v1beta1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, newNotice("2", "sqs")) }
		check(t, patch(t, admin(t), held, add), "")
	})
	t.Run("nor does the administrator", func(t *testing.T) {
		check(t, patch(t, admin(t), plain, func(r *v1beta1.Interruption) { r.Spec.Approval = word(alice) }), "act only in your own name")
		forged := record("i-forged", "node-a", newNotice("1", "sqs"))
		forged.Spec.Approval = word(alice)
		check(t, admin(t).Create(t.Context(), forged, client.DryRunAll), "act only in your own name")
	})
}

// asks is a request of a user to drain a node.
func asks(user string, change func(*v1beta1.Notice)) v1beta1.Notice {
	n := newNotice("requested-1", "user")
	n.Kind, n.InstanceAction, n.Deadline, n.Description = "Requested", "", nil, "requested by "+user+": new AMI"
	if change != nil {
		change(&n)
	}
	return n
}

func TestOperatorsRequestDrainsOnly(t *testing.T) {
	c := clientOf(t, operator(t, alice))
	known := record("i-known", "node-a", newNotice("1", "sqs"), asks(bob, func(n *v1beta1.Notice) { n.ID = "requested-0" }))
	if err := admin(t).Create(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, known) })
	until(t, "the policy to be in force", func() (bool, error) {
		err := c.Create(t.Context(), record("i-new", "node-b", newNotice("1", "sqs")), client.DryRunAll)
		return err != nil && apierrors.IsForbidden(err), err
	})
	hard := func(n *v1beta1.Notice) { n.Deadline = &v1beta1.Deadline{Time: n.Time, Type: v1beta1.DeadlineHard} }
	estimated := func(n *v1beta1.Notice) {
		n.Deadline = &v1beta1.Deadline{Time: n.Time, Type: v1beta1.DeadlineEstimated}
	}
	for name, test := range map[string]struct {
		notice v1beta1.Notice
		want   string
	}{
		"requests a drain":             {asks(alice, nil), ""},
		"requests it by a time":        {asks(alice, estimated), ""},
		"requests it without a reason": {asks(alice, func(n *v1beta1.Notice) { n.Description = "requested by " + alice }), ""},
		"with a hard deadline":         {asks(alice, hard), notices},
		"as another user":              {asks(bob, nil), notices},
		"as one with a longer name":    {asks(alice+".org", nil), notices},
		"of another kind":              {asks(alice, func(n *v1beta1.Notice) { n.Kind = "SpotInterruption" }), notices},
		"from the queue":               {asks(alice, func(n *v1beta1.Notice) { n.Source = "sqs" }), notices},
		"of an instance that is gone":  {asks(alice, func(n *v1beta1.Notice) { n.InstanceState = "terminated" }), notices},
		"with a lifecycle hook":        {asks(alice, func(n *v1beta1.Notice) { n.LifecycleHook = &v1beta1.LifecycleHookInvocation{Group: "g"} }), notices},
		"as a drill":                   {asks(alice, func(n *v1beta1.Notice) { n.Drill = true }), notices},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.Create(t.Context(), record("i-new", "node-b", test.notice), client.DryRunAll), test.want)
			check(t, patch(t, c, known, func(r *v1beta1.Interruption) { r.Spec.Notices = append(r.Spec.Notices, test.notice) }), test.want)
		})
	}
	for name, test := range map[string]struct {
		edit func(*v1beta1.Interruption)
		want string
	}{
		"withdraws another user's request": {func(r *v1beta1.Interruption) { r.Spec.Notices[1].Withdrawn = true }, ""},
		"withdraws a notice of AWS":        {func(r *v1beta1.Interruption) { r.Spec.Notices[0].Withdrawn = true }, notices},
		"removes a notice":                 {func(r *v1beta1.Interruption) { r.Spec.Notices = []v1beta1.Notice{r.Spec.Notices[1]} }, notices},
		"changes a request":                {func(r *v1beta1.Interruption) { r.Spec.Notices[1].Description = "requested by " + alice }, notices},
		"withdraws and changes it":         {func(r *v1beta1.Interruption) { r.Spec.Notices[1].Withdrawn, r.Spec.Notices[1].Subject = true, "x" }, notices},
		"requests, and moves it to another node": {func(r *v1beta1.Interruption) {
			r.Spec.Notices = append(r.Spec.Notices, asks(alice, nil))
			r.Spec.NodeName = "node-b"
		}, notices},
		"requests, and changes a notice of AWS": {func(r *v1beta1.Interruption) {
			r.Spec.Notices = append(r.Spec.Notices, asks(alice, nil))
			r.Spec.Notices[0].Kind = "X"
		}, notices},
	} {
		t.Run(name, func(t *testing.T) { check(t, patch(t, c, known, test.edit), test.want) })
	}
	t.Run("with a finalizer", func(t *testing.T) {
		r := record("i-new", "node-b", asks(alice, nil))
		r.Finalizers = []string{"example.com/kept"}
		check(t, c.Create(t.Context(), r, client.DryRunAll), "may not change the finalizers")
	})
}

// patch applies an edit as a dry run, in the same way as lifeboatd.
func patch(t *testing.T, c client.Client, r *v1beta1.Interruption, edit func(*v1beta1.Interruption)) error {
	t.Helper()
	edited := r.DeepCopy()
	edit(edited)
	return c.Patch(t.Context(), edited, client.MergeFrom(r.DeepCopy()), client.DryRunAll)
}

// TestOperatorRequestsAreAccepted makes the same requests as `lifeboat hold`: it
// reads its own user name, and writes with that name unless the object has changed.
func TestOperatorRequestsAreAccepted(t *testing.T) {
	r := record("i-said", "node-a", newNotice("1", "sqs"))
	if err := admin(t).Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, r) })
	c := clientOf(t, operator(t, alice))
	var who authenticationv1.SelfSubjectReview
	if err := c.Create(t.Context(), &who); err != nil || who.Status.UserInfo.Username != alice {
		t.Fatalf("the API server returns the user %q, %v", who.Status.UserInfo.Username, err)
	}
	hold := func(note string) error {
		said := r.DeepCopy()
		said.Spec.Hold = word(who.Status.UserInfo.Username)
		said.Spec.Hold.Note = note
		return c.Patch(t.Context(), said, client.MergeFromWithOptions(r.DeepCopy(), client.MergeFromWithOptimisticLock{}))
	}
	check(t, hold("once"), "")
	if err := hold("again, from what was read before"); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}

func TestOperatorPermissions(t *testing.T) {
	admin(t)
	want := []string{
		"/nodes get", "/nodes list",
		"coordination.k8s.io/leases get of lifeboat-drills", "coordination.k8s.io/leases patch of lifeboat-drills",
		"karpenter.sh/nodeclaims get", "karpenter.sh/nodepools get",
		"lifeboat.dev/interruptionpolicies get", "lifeboat.dev/interruptionpolicies list", "lifeboat.dev/interruptionpolicies watch",
		"lifeboat.dev/interruptions create", "lifeboat.dev/interruptions/requests create",
		"lifeboat.dev/interruptions get", "lifeboat.dev/interruptions list", "lifeboat.dev/interruptions patch", "lifeboat.dev/interruptions watch",
		"lifeboat.dev/nodegroups get", "lifeboat.dev/nodegroups list", "lifeboat.dev/nodegroups watch",
		"lifeboat.dev/pauses create", "lifeboat.dev/pauses delete", "lifeboat.dev/pauses get", "lifeboat.dev/pauses list",
		"lifeboat.dev/pauses update", "lifeboat.dev/pauses watch",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, granted(t, operator(t, alice))); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
}

// TestOperatorRoleIsNotAggregated checks that no other role contains the operator's
// role.
func TestOperatorRoleIsNotAggregated(t *testing.T) {
	for _, o := range render(t, with(t, everything)).Objects {
		if o.GetName() != "lifeboat-operator" {
			continue
		}
		if o.GetKind() != "ClusterRole" {
			t.Errorf("there is %s %s: it is for administrators to bind", o.GetKind(), o.GetName())
		}
		for label := range o.GetLabels() {
			if got := "rbac.authorization.k8s.io/aggregate-to-"; len(label) > len(got) && label[:len(got)] == got {
				t.Errorf("it is aggregated: %s", label)
			}
		}
	}
}
