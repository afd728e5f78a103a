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
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	// redTeamSteps is how many attacks a normal run makes; LIFEBOAT_REDTEAM_TIME replaces it.
	redTeamSteps = 240
	// reclaimEvery is after how many attacks EC2 reclaims a node for real.
	reclaimEvery = 80
)

// act is one thing that an identity tries.
type act struct {
	name string
	// refused says that the API server must refuse each attempt.
	refused bool
	do      func(ctx context.Context, rnd *rand.Rand) error
}

// attacker is an identity of the threat model (docs/threat-model.md), with all that it may try.
type attacker struct {
	name string
	acts []act
}

// redTeam is a cluster under attack.
type redTeam struct {
	*rig
	pods *podRecords
	// stolen is the node whose agent token and kubelet credentials are stolen; stolenPool and
	// stolenMember are nodes of Karpenter and of a group whose agent token is stolen. The stolen
	// kubelet claims the instance claimed. Forged messages name the nodes forged, of which the last
	// is Karpenter's. No attack may have an effect on bystanders.
	stolen, stolenPool, claimed ec2.Instance
	stolenMember                ec2.Instance
	forged, bystanders          []ec2.Instance
	reclaimed, scaledIn         []ec2.Instance
	members                     []seenMember         // of the Auto Scaling groups under attack
	claims                      map[string]seenClaim // by name
	tried, accepted             map[string]int
}

// TestRedTeam plays each attacker of the threat model with random acts, while EC2 reclaims nodes
// for real. LIFEBOAT_REDTEAM_SEED repeats a run, LIFEBOAT_REDTEAM_TIME sets its length.
func TestRedTeam(t *testing.T) {
	t.Parallel()
	seed := redTeamSeed(t)
	t.Logf("to repeat: LIFEBOAT_REDTEAM_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRedTeam(t)
	attackers := []attacker{
		r.agent("agent", r.stolen), r.agent("agent of Karpenter's node", r.stolenPool), r.kubelet(), r.tenant(), r.policyAuthor(),
		r.operator(), r.principal(), r.neighbour(), r.role(), r.token(), r.agent("agent of a group's node", r.stolenMember),
		r.groupForger(),
	}

	more := r.budgetOfSteps()
	var all []func()
	for step := 0; more(step); step++ {
		if len(all) == 0 { // every act once, in random order, before any act repeats
			all = r.shuffled(attackers, rnd)
		}
		all[0]()
		all = all[1:]
		r.rememberClaims()
		if step%reclaimEvery == reclaimEvery/2 {
			r.reclaimOne()
		} else if step%scaleInEvery == scaleInEvery-1 {
			r.scaleInOne()
		}
		if t.Failed() {
			break
		}
	}
	r.checkBystanders()
	r.checkClaims()
	r.checkTerminated()
	r.checkGroups()
	r.checkNoWriteLoop()
	r.checkRoleSuffices()
	r.checkMemory()
	for _, name := range slices.Sorted(maps.Keys(r.tried)) {
		t.Logf("%-60s tried %4d times, accepted %4d times", name, r.tried[name], r.accepted[name])
	}
}

func redTeamSeed(t *testing.T) uint64 {
	t.Helper()
	text, ok := os.LookupEnv("LIFEBOAT_REDTEAM_SEED")
	if !ok {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("LIFEBOAT_REDTEAM_SEED: %v", err)
	}
	return seed
}

// budgetOfSteps returns a function that reports whether to make another step.
func (r *redTeam) budgetOfSteps() func(step int) bool {
	text, ok := os.LookupEnv("LIFEBOAT_REDTEAM_TIME")
	if !ok {
		return func(step int) bool { return step < redTeamSteps }
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		r.t.Fatalf("LIFEBOAT_REDTEAM_TIME: %v", err)
	}
	end := time.Now().Add(length)
	return func(int) bool { return time.Now().Before(end) }
}

func newRedTeam(t *testing.T) *redTeam {
	t.Helper()
	args, log := auditArgs(t, writesPolicy)
	r := newKarpenterRig(t, sandbox.Options{
		APIServerArgs: args, KarpenterQueue: "karpenter", LimitRole: true,
		// The sandbox allows webhooks to this machine. Without these flags, the defaults apply.
		LifeboatdArgs: []string{"--webhook-allow-http=false", "--webhook-allow-private=false", "--webhook-allow-loopback=false"},
	})
	r.audit = log
	r2 := &redTeam{rig: r, pods: r.watchPods(), claims: map[string]seenClaim{}, tried: map[string]int{}, accepted: map[string]int{}}
	r2.preparePools()
	r2.makeGroups()
	pool, nodes := r2.poolNodes(3), r2.launch(5)
	r2.stolen, r2.claimed, r2.stolenPool = nodes[0], nodes[1], pool[0]
	r2.forged, r2.bystanders = append(r2.forged, nodes[2], pool[1]), []ec2.Instance{nodes[3], nodes[4], pool[2]}
	r.apply(deployment("web", 6, time.Second), budget("web", 4), deployment("bystander", 6, time.Second))
	r.untilRunning("web", 6)
	r.untilRunning("bystander", 6)
	return r2
}

// launch starts instances with the tag of the cluster, which the controller's role may terminate.
func (r *redTeam) launch(n int) []ec2.Instance {
	r.t.Helper()
	return r.launchAll(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: n, Max: n, Spot: &ec2.SpotOptions{}, Tags: map[string]string{clusterTag: "owned"},
	})
}

// shuffled returns each act of each attacker once, in random order.
func (r *redTeam) shuffled(attackers []attacker, rnd *rand.Rand) []func() {
	var all []func()
	for _, who := range attackers {
		for _, a := range who.acts {
			all = append(all, func() { r.try(who.name+": "+a.name, a, rnd) })
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// try makes one attempt, and fails the test if the API server accepts what it must refuse.
func (r *redTeam) try(name string, a act, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	err := a.do(ctx, rnd)
	r.tried[name]++
	if err == nil {
		r.accepted[name]++
	}
	if !a.refused {
		return
	}
	if err == nil {
		r.t.Errorf("%s: the API server accepted it", name)
	} else if !notAuthorized(err) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) && !errors.Is(err, errNothingToDo) {
		r.t.Logf("%s: %v", name, err)
	}
}

// errNothingToDo says that an act found no object to act on.
var errNothingToDo = errors.New("there is nothing to act on")

// reclaimOne has EC2 reclaim a new node with pods.
func (r *redTeam) reclaimOne() {
	r.t.Helper()
	in := r.genuineNode()
	r.reclaimed = append(r.reclaimed, in)
	r.endGenuinely(in, func() { r.reclaim(in) })
}

// endGenuinely ends an instance with two pods, and checks that they leave in time with their full
// grace.
func (r *redTeam) endGenuinely(in ec2.Instance, end func()) {
	r.t.Helper()
	for i := range 2 {
		spec := template(map[string]string{"app": "genuine"}, time.Second)
		r.apply(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("genuine-%s-%d", in.ID, i),
				Labels: spec.Labels, Annotations: spec.Annotations,
			},
			Spec: pinned(spec.Spec, in.PrivateDNSName),
		})
	}
	r.until("its pods to run", time.Minute, func(context.Context) (bool, error) {
		running := r.pods.where(func(p podRecord) bool { return p.node == in.PrivateDNSName })
		return len(running) >= 2, nil
	})
	deadline := time.Now().Add(2 * time.Minute)
	end()
	r.until("the pods of "+in.PrivateDNSName+" to leave", 2*time.Minute, func(context.Context) (bool, error) {
		left := r.pods.where(func(p podRecord) bool { return p.node == in.PrivateDNSName && p.gone.IsZero() })
		return len(left) == 0, fmt.Errorf("these are there: %+v", left)
	})
	for _, p := range r.pods.on(in.PrivateDNSName) {
		if p.gone.After(deadline) {
			r.t.Errorf("%s left %s after the deadline of a genuine notice", p.name, p.gone.Sub(deadline))
		}
		if p.grace != 30 {
			r.t.Errorf("%s had %d s of its 30 s of grace", p.name, p.grace)
		}
	}
}

func pinned(spec corev1.PodSpec, node string) corev1.PodSpec {
	spec.NodeName = node
	return spec
}

// as returns a client that acts as a user.
func (r *redTeam) as(user string, groups ...string) client.Client {
	r.t.Helper()
	config := rest.CopyConfig(r.RESTConfig())
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: r.client.Scheme()})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}
