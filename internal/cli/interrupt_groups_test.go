package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// FIS accepts five instances per action, so twelve need three actions.
func TestInterruptViaFISInBatches(t *testing.T) {
	e := newEmulated(t)
	var nodes []client.Object
	var names, ids []string
	for i := range 12 {
		ids = append(ids, e.launch(t, &ec2.SpotOptions{}))
		names = append(names, fmt.Sprintf("node-%02d", i))
		nodes = append(nodes, node(names[i], "aws:///us-east-1a/"+ids[i]))
	}
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, nodes...)}
	if r := h.run(t.Context(), append([]string{"interrupt", "--sandbox=default"}, names...)...); r.code != ExitOK {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	got := e.warnings()
	slices.Sort(got)
	slices.Sort(ids)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("warned of (-want +got):\n%s", diff)
	}
}

// The end of a Capacity Block is one message about all its instances.
func TestInterruptSendsOneMessagePerCapacityBlock(t *testing.T) {
	e := newEmulated(t)
	const block = "cr-0a1b2c3d4e5f60718"
	launched, err := e.States.EC2.Launch(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.2xlarge", Min: 2, Max: 2, Market: ec2.CapacityBlock, CapacityReservationID: block,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range launched {
		for i, _ := e.States.EC2.Instance(l.ID); i.State != ec2.Running; i, _ = e.States.EC2.Instance(l.ID) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	plain := e.launch(t, nil)
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{},
		node("gpu-a", "aws:///us-east-1a/"+launched[0].ID), node("gpu-b", "aws:///us-east-1a/"+launched[1].ID), node("plain", "aws:///us-east-1a/"+plain))}
	r := h.run(t.Context(), "interrupt", "gpu-a", "--sandbox=default", "--kind", "capacity-block", "--in", "10m")
	if r.code != ExitOK || !strings.Contains(r.out, "gpu-a") || !strings.Contains(r.out, "gpu-b") {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	got := e.messages(t)
	if len(got) != 1 || !strings.Contains(got[0], `"capacity-reservation-id":"`+block+`","end-date":"2026-05-11T08:54:02Z"`) {
		t.Errorf("sent %v", got)
	}
	r = h.run(t.Context(), "interrupt", "plain", "--sandbox=default", "--kind", "capacity-block")
	if r.code != ExitFailed || !strings.Contains(r.err, "does not run in a Capacity Block") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// --until-done does not wait for a change that is weeks away.
func TestWatchUntilDoneSkipsScheduledChanges(t *testing.T) {
	s := &script{states: []*v1beta1.Interruption{scheduled("n", false)}}
	r := (&harness{t: t, cluster: fakeCluster(t, s.funcs())}).run(t.Context(), "watch", "--until-done")
	if r.code != ExitOK || r.err != "" {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
