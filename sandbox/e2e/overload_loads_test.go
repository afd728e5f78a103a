//go:build overload

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// The loads of TestOverload. An annotation has the largest size that the API server accepts.
const (
	overloadPods       = 1000
	overloadAnnotation = 256<<10 - 256
	overloadPolicies   = 500
	overloadRecords    = 10_000
	overloadMessages   = 5_000
	overloadBudgets    = 200
	overloadValues     = 15_000 // of each budget
	// overloadMemory is the memory limit of the chart's controller.
	overloadMemory = 512 << 10 // KiB
)

// load is one kind of object that an attacker makes many of.
type load struct {
	name string
	n    int
	make func(ctx context.Context, i int) error
	done atomic.Int64
}

// loads are those of a user who may create everything, and of a sender of the queue.
func (r *rig) loads() []*load {
	r.t.Helper()
	const user, idle = "attacker@example.com", "idle"
	r.apply(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: idle}}, // its pods stay as they are: it has no kubelet
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "attacker"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		},
	)
	config := rest.CopyConfig(r.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: r.client.Scheme()})
	if err != nil {
		r.t.Fatal(err)
	}
	pad := strings.Repeat("x", overloadAnnotation)
	values := make([]string, overloadValues)
	for i := range values {
		values[i] = fmt.Sprint("team-", i)
	}
	return []*load{
		{name: "pods with large annotations", n: overloadPods, make: func(ctx context.Context, i int) error {
			spec := template(map[string]string{"app": "tenant"}, time.Second)
			spec.Annotations["pad"], spec.Spec.NodeName = pad, idle
			return c.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: fmt.Sprint("pod-", i), Labels: spec.Labels, Annotations: spec.Annotations}, Spec: spec.Spec,
			})
		}},
		{name: "policies", n: overloadPolicies, make: func(ctx context.Context, i int) error {
			p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p-", i)}, Spec: v1beta1.InterruptionPolicySpec{
				Priority: int32(i), Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionIgnore}},
			}}
			p.Spec.Nodes.MatchLabels = map[string]string{"team": fmt.Sprint("t-", i)}
			return c.Create(ctx, p)
		}},
		{name: "large budgets", n: overloadBudgets, make: func(ctx context.Context, i int) error {
			selector := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
			return c.Create(ctx, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: fmt.Sprint("budget-", i)}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &selector},
			})
		}},
		{name: "Interruptions", n: overloadRecords, make: func(ctx context.Context, i int) error {
			return c.Create(ctx, forgedRecord(i, time.Now()))
		}},
		{name: "batches of ten forged messages", n: overloadMessages / 10, make: r.sendForged},
	}
}

// forgedRecord returns the Interruption of an instance that does not exist: every second one has a
// hard deadline, which is nearer than that of a genuine spot notice.
func forgedRecord(i int, now time.Time) *v1beta1.Interruption {
	n := v1beta1.Notice{
		ID: fmt.Sprint("forged-", i), Kind: notice.KindScheduledChange, Source: "sqs", InstanceAction: notice.ActionStop,
		Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now), Deadline: notice.At(now.Add(time.Hour), v1beta1.DeadlineSoft),
	}
	if i%2 == 0 {
		n.Kind, n.InstanceAction, n.Deadline = notice.KindSpotInterruption, notice.ActionTerminate, notice.At(now.Add(time.Minute), v1beta1.DeadlineHard)
	}
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instanceID(i)},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instanceID(i), NodeName: fmt.Sprint("gone-", i), Notices: []v1beta1.Notice{n}},
	}
}

// instanceID returns the id of an instance that does not exist.
func instanceID(i int) string { return fmt.Sprintf("i-0f%015x", i) }

// sendForged sends ten messages: spot warnings of instances that do not exist or of another account,
// the end of instances, and what is no message.
func (r *rig) sendForged(ctx context.Context, i int) error {
	const spot, change = "EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"
	st := r.State()
	var entries []sqstypes.SendMessageBatchRequestEntry
	for k := range 10 {
		id, account, detailType := fmt.Sprintf("forged-%d-%d", i, k), st.Account, spot
		detail := map[string]string{"instance-id": instanceID(1<<40 + 10*i + k), "instance-action": "terminate", "pad": strings.Repeat("x", 8<<10)}
		switch k % 4 {
		case 1:
			account = "999999999999"
		case 2:
			detailType, detail["state"] = change, "terminated"
		}
		body := envelope(id, detailType, account, st.Region, time.Now(), detail)
		if k%4 == 3 {
			body = body[:len(body)/2]
		}
		entries = append(entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(k)), MessageBody: &body})
	}
	_, err := r.sqs.SendMessageBatch(ctx, &awssqs.SendMessageBatchInput{QueueUrl: &st.QueueURL, Entries: entries})
	return err
}

// run makes all objects of a load, some at the same time.
func (l *load) run(ctx context.Context, t *testing.T) {
	next := make(chan int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range next {
				if err := l.make(ctx, i); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", l.name, err)
					return
				}
				l.done.Add(1)
			}
		})
	}
	for i := range l.n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
}

// memoryUse is lifeboatd's resident and anonymous memory in KiB.
type memoryUse struct {
	r                   *rig
	resident, anonymous atomic.Int64 // the peaks
}

// watchMemory reads lifeboatd's memory until the test ends.
func (r *rig) watchMemory() *memoryUse {
	m := &memoryUse{r: r}
	go func() {
		for sleep.For(r.t.Context(), 100*time.Millisecond) {
			resident, anonymous := m.read()
			m.resident.Store(max(m.resident.Load(), resident))
			m.anonymous.Store(max(m.anonymous.Load(), anonymous))
		}
	}()
	return m
}

// read reads proc_pid_status(5).
func (m *memoryUse) read() (resident, anonymous int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.r.lifeboatPID()))
	if err != nil {
		return 0, 0
	}
	for name, field := range map[string]*int64{"VmRSS": &resident, "RssAnon": &anonymous} {
		_, after, _ := strings.Cut(string(text), "\n"+name+":")
		if fields := strings.Fields(after); len(fields) > 0 {
			*field, _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return resident, anonymous
}

func (m *memoryUse) log(when string) {
	resident, anonymous := m.read()
	m.r.t.Logf("%s: lifeboatd has %d MiB resident, %d MiB anonymous; at most %d and %d MiB so far", when,
		resident>>10, anonymous>>10, m.resident.Load()>>10, m.anonymous.Load()>>10)
}

func (m *memoryUse) check() {
	m.r.t.Helper()
	if peak := m.resident.Load(); peak == 0 || peak > overloadMemory {
		m.r.t.Errorf("lifeboatd had %d MiB resident, limit %d MiB", peak>>10, overloadMemory>>10)
	}
}
