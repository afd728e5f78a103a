package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// launchElected starts a replica that takes part in the leader election, as in the chart.
func (r *rig) launchElected() replica {
	r.Helper()
	return r.launch("--leader-elect=true", "--leader-election-namespace="+chart.Namespace)
}

// heartbeatInterval is how often a kubelet writes the status of an unchanged node: its default
// nodeStatusReportFrequency (Kubernetes documentation, "Kubelet Configuration").
const heartbeatInterval = 5 * time.Minute

// heartbeats writes the heartbeats of all nodes for some time, evenly, as their kubelets do.
func (r *rig) heartbeats(d time.Duration) {
	r.Helper()
	n := int(float64(r.world.nodes) * d.Seconds() / heartbeatInterval.Seconds())
	tick := time.NewTicker(d / time.Duration(n+1))
	defer tick.Stop()
	for k := range n {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			r.Fatal(r.Context().Err())
		}
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, stamp(time.Now()))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(r.world.nodes - 1 - k)}}
		r.must(r.admin.Status().Patch(r.Context(), node, client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
	}
	<-tick.C
}

// untilEvicted waits until the API server has accepted the eviction of a pod of a node.
func (r *rig) untilEvicted(on int) {
	r.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	r.until(fmt.Sprintf("the first eviction on node %d", on), 3*time.Minute, func() (bool, error) {
		<-tick.C
		for k := range r.world.podsPerNode {
			p := r.podRef(on*r.world.podsPerNode + k)
			if err := r.admin.Get(r.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return false, err
			}
			if p.DeletionTimestamp != nil {
				return true, nil
			}
		}
		return false, fmt.Errorf("no pod has a deletion timestamp")
	})
}

// createPolicies creates policies with two rules each, for NodePools that do not exist.
func (r *rig) createPolicies(n int) {
	r.Helper()
	r.each(n, creators, func(ctx context.Context, i int) error {
		return r.admin.Create(ctx, &v1beta1.InterruptionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i)},
			Spec: v1beta1.InterruptionPolicySpec{
				Nodes: v1beta1.NodeSelector{NodePools: []string{fmt.Sprint("team-", i)}},
				Rules: []v1beta1.Rule{
					{Name: "planned", Kinds: []string{notice.KindScheduledChange}, Action: v1beta1.ActionDrain},
					{Name: "reclaims", Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain},
				},
			},
		})
	})
}

// createRecords creates finished Interruptions of nodes that have left the cluster. No lifeboatd
// runs meanwhile: it would act before the status says that they are finished.
func (r *rig) createRecords(n int) {
	r.Helper()
	r.each(n, creators, func(ctx context.Context, i int) error {
		in := record(r.world.nodes + 1 + i)
		status := in.Status
		if err := r.admin.Create(ctx, in); err != nil {
			return err
		}
		in.Status = status
		return r.admin.Status().Update(ctx, in)
	})
}

// record is the finished Interruption of an earlier node, with the timeline of a usual drain.
func record(i int) *v1beta1.Interruption {
	end := metav1.NowMicro()
	deadline := v1beta1.Deadline{Time: metav1.NewTime(end.Time), Type: v1beta1.DeadlineHard}
	in := interruption(i, v1beta1.Notice{
		ID: fmt.Sprint("record-", i), Kind: notice.KindSpotInterruption, Source: notice.SourceQueue, Time: metav1.NewTime(end.Add(-2 * time.Minute)),
		ReceivedTime: metav1.NewMicroTime(end.Add(-2 * time.Minute)), Deadline: &deadline, InstanceAction: notice.ActionTerminate,
		Description: "EC2 takes the spot instance back at " + stamp(end.Time) + " (terminate)",
	})
	in.Status = v1beta1.InterruptionStatus{
		Phase: v1beta1.PhaseCompleted, Kind: notice.KindSpotInterruption, NodeName: nodeName(i), Deadline: &deadline,
		Decision:     &v1beta1.Decision{Action: v1beta1.ActionDrain, Message: "no policy selects this node: the default for SpotInterruption is Drain"},
		Drain:        &v1beta1.DrainStatus{StartTime: &end, PodCounts: v1beta1.PodCounts{Total: 20, Moved: 20}},
		LastNoticeID: fmt.Sprint("record-", i), History: recordtest.CompletedBefore(end.Time),
	}
	recordtest.Complete(in, end.Time, fmt.Sprint("record-", i))
	for k := range 10 {
		in.Status.Timeline = append(in.Status.Timeline, v1beta1.TimelineEntry{
			Time: end, Reason: "PodEvicted", Message: fmt.Sprintf("evicted pod team-1/app-6c9fd7d8b5-%d-%d with its grace period of 30s", i, k),
		})
	}
	return in
}
