package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

const karpenterQueue = "karpenter"

// Policies of Karpenter's role. Lifeboat's guide says to take the permission to poll away.
const (
	mayPoll    = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	mayNotPoll = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","NotAction":"ec2:DescribeInstanceStatus","Resource":"*"}]}`
)

// sideBySide is a sandbox with Karpenter, in which either Karpenter or Lifeboat handles
// interruptions.
type sideBySide struct {
	*sandbox.Sandbox
	client client.Client
	kube   kubernetes.Interface
	queues *awssqs.Client
	events *eventbridge.Client

	mu         sync.Mutex
	poweredOff map[string]time.Time // when each node lost power
}

func newSideBySide(tb testing.TB) *sideBySide {
	tb.Helper()
	dir := tb.TempDir()
	box, err := sandbox.New(sandbox.Options{
		Name: "bench", Dir: filepath.Join(dir, "s"), BootDelay: bootDelay, Lifeboatd: buildLifeboatd(tb, dir),
		Karpenter: true, KarpenterQueue: karpenterQueue, KarpenterPolicy: mayPoll, NoLifeboat: true,
	})
	must(tb, err)
	must(tb, box.Up(tb.Context()))
	tb.Cleanup(func() {
		if err := box.Down(); err != nil {
			tb.Error(err)
		}
	})
	s := &sideBySide{
		Sandbox: box, queues: awssqs.NewFromConfig(box.AWSConfig()), events: eventbridge.NewFromConfig(box.AWSConfig()), poweredOff: map[string]time.Time{},
	}
	scheme := runtime.NewScheme()
	must(tb, clientgoscheme.AddToScheme(scheme))
	must(tb, v1beta1.AddToScheme(scheme))
	config := box.RESTConfig()
	config.QPS = -1
	s.client, err = client.New(config, client.Options{Scheme: scheme})
	must(tb, err)
	s.kube, err = kubernetes.NewForConfig(config)
	must(tb, err)
	tb.Cleanup(s.recordPowerOffs())
	must(tb, karpenter.MakeRules(tb.Context(), box.AWSConfig(), box.State().KarpenterQueueURL))
	s.makeNodePool(tb)
	return s
}

// recordPowerOffs starts to record when nodes lose power.
func (s *sideBySide) recordPowerOffs() (cancel func()) {
	return s.EC2().Subscribe(func(c ec2.Change) {
		if c.What == ec2.PowerOff {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.poweredOff[c.Instance.PrivateDNSName] = time.Now()
		}
	})
}

// makeNodePool creates a NodePool for nodes of one size. Empty nodes stay, so only interruptions
// move pods.
func (s *sideBySide) makeNodePool(tb testing.TB) {
	tb.Helper()
	nodeClass, nodePool, err := karpenter.Defaults(0)
	must(tb, err)
	requirements, _, err := unstructured.NestedSlice(nodePool.Object, "spec", "template", "spec", "requirements")
	must(tb, err)
	requirements = append(requirements, map[string]any{
		"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": []any{"4"},
	})
	must(tb, unstructured.SetNestedSlice(nodePool.Object, requirements, "spec", "template", "spec", "requirements"))
	must(tb, unstructured.SetNestedField(nodePool.Object, "Never", "spec", "disruption", "consolidateAfter"))
	must(tb, s.client.Create(tb.Context(), nodeClass))
	must(tb, s.client.Create(tb.Context(), nodePool))
}

// tune selects the side that receives interruptions. Karpenter restarts without its caches.
func (s *sideBySide) tune(tb testing.TB, who side) {
	tb.Helper()
	ctx := tb.Context()
	must(tb, s.StopKarpenter())
	prefix := karpenterQueue + "-"
	rules, err := s.events.ListRules(ctx, &eventbridge.ListRulesInput{NamePrefix: &prefix})
	must(tb, err)
	if len(rules.Rules) == 0 {
		tb.Fatal("there are no EventBridge rules for Karpenter")
	}
	for _, rule := range rules.Rules {
		if who.lifeboat {
			_, err = s.events.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: rule.Name})
		} else {
			_, err = s.events.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: rule.Name})
		}
		must(tb, err)
	}
	for _, url := range []string{s.State().KarpenterQueueURL, s.State().QueueURL} {
		_, err := s.queues.PurgeQueue(ctx, &awssqs.PurgeQueueInput{QueueUrl: &url})
		must(tb, err)
	}
	policy := mayPoll
	if who.lifeboat {
		policy = mayNotPoll
	}
	must(tb, s.LimitKarpenter(policy))
	must(tb, s.StartKarpenter(ctx))
	if who.lifeboat {
		must(tb, s.RestartLifeboat(ctx, "--karpenter-queue-url="+s.State().KarpenterQueueURL))
	}
	if who.evict {
		must(tb, s.client.Create(ctx, &v1beta1.InterruptionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "evict"},
			Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{
				Kinds:    []string{notice.KindSpotInterruption, notice.KindInstanceStateChange, notice.KindScheduledChange},
				Action:   v1beta1.ActionDrain,
				Strategy: v1beta1.StrategyEvict, Replacement: v1beta1.ReplacementBefore,
			}}},
		}))
	}
}

func (s *sideBySide) deploy(tb testing.TB, t trial) {
	tb.Helper()
	for i := range t.apps {
		name := appName(i)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		if t.budgets {
			one := intstr.FromInt32(1)
			must(tb, s.client.Create(tb.Context(), &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: selector},
			}))
		}
		replicas := int32(t.replicas)
		must(tb, s.client.Create(tb.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: appTemplate(selector.MatchLabels)},
		}))
	}
}

func appTemplate(labels map[string]string) corev1.PodTemplateSpec {
	grace := int64(podGrace.Seconds())
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
			kwok.StartSecondsAnnotation: strconv.Itoa(int(podStarts.Seconds())),
		}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "example/app:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("900m")}},
				Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(podStops.Seconds())}}},
			}},
		},
	}
}

// untilReady waits until all pods are Ready and Karpenter has initialised their nodes.
func (s *sideBySide) untilReady(tb testing.TB, t trial) {
	tb.Helper()
	s.wait(tb, "the workloads to be up", 5*time.Minute, func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		if err := s.client.List(ctx, &nodes); err != nil {
			return false, err
		}
		waiting := slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Labels["karpenter.sh/initialized"] != "true" })
		var pods corev1.PodList
		if err := s.client.List(ctx, &pods, client.InNamespace("default")); err != nil {
			return false, err
		}
		ready := 0
		for i := range pods.Items {
			if look(&pods.Items[i]).ready {
				ready++
			}
		}
		return !waiting && ready == t.apps*t.replicas, fmt.Errorf("%d nodes, %d pods Ready", len(nodes.Items), ready)
	})
}

// clean deletes everything that a round left.
func (s *sideBySide) clean(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	must(tb, s.StopLifeboat())
	s.EC2().RestoreCapacity()
	for _, object := range []client.Object{&policyv1.PodDisruptionBudget{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}} {
		must(tb, s.client.DeleteAllOf(ctx, object, client.InNamespace("default"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	for _, object := range []client.Object{&v1beta1.InterruptionPolicy{}, &v1beta1.Interruption{}} {
		must(tb, s.client.DeleteAllOf(ctx, object))
	}
	s.wait(tb, "nothing to be left of the round before", 3*time.Minute, func(ctx context.Context) (bool, error) {
		if err := s.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)); err != nil {
			return false, err
		}
		claims := &unstructured.UnstructuredList{}
		claims.SetAPIVersion("karpenter.sh/v1")
		claims.SetKind("NodeClaimList")
		if err := s.client.List(ctx, claims); err != nil {
			return false, err
		}
		for i := range claims.Items {
			if claims.Items[i].GetDeletionTimestamp() == nil {
				if err := client.IgnoreNotFound(s.client.Delete(ctx, &claims.Items[i])); err != nil {
					return false, err
				}
			}
		}
		var nodes corev1.NodeList
		if err := s.client.List(ctx, &nodes); err != nil {
			return false, err
		}
		running, _ := s.powered()
		left := len(claims.Items) + len(nodes.Items) + len(running)
		return left == 0, fmt.Errorf("%d NodeClaims, %d nodes, %d instances", len(claims.Items), len(nodes.Items), len(running))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.poweredOff)
}

// powered returns the instances with power, and the names of their nodes.
func (s *sideBySide) powered() (ids []string, nodes map[string]bool) {
	nodes = map[string]bool{}
	for _, in := range s.EC2().Instances() {
		if in.State == ec2.Pending || in.Powered {
			ids = append(ids, in.ID)
			nodes[in.PrivateDNSName] = true
		}
	}
	return ids, nodes
}

// powerOffTimes returns when each interrupted node lost power.
func (s *sideBySide) powerOffTimes(interrupted map[string]bool) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	poweredOff := maps.Clone(s.poweredOff)
	maps.DeleteFunc(poweredOff, func(node string, _ time.Time) bool { return !interrupted[node] })
	return poweredOff
}

// wait waits for a condition.
func (s *sideBySide) wait(tb testing.TB, what string, within time.Duration, holds func(ctx context.Context) (bool, error)) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		ok, err := holds(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(s.KarpenterLog())
			tb.Fatalf("waited %s for %s: %v; Karpenter's log ends:\n%s", within, what, err, log[max(0, len(log)-3000):])
		case <-tick.C:
		}
	}
}
