//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// writesPolicy has the API server log the writes of Lifeboat's accounts, and all evictions.
const writesPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, resources: [{group: coordination.k8s.io}, {group: "", resources: [events]}, {group: events.k8s.io}]}
- {level: Metadata, userGroups: ["system:serviceaccounts:lifeboat-system"], verbs: [create, update, patch, delete]}
- {level: None}
`

// redTeamMemory is the memory limit of the chart's controller.
const redTeamMemory = 512 << 20

// checkTerminated checks that no attack ended an instance, and that every instance that ended was
// reclaimed for real.
func (r *redTeam) checkTerminated() {
	r.t.Helper()
	for _, in := range r.EC2().Instances() {
		isThis := func(other ec2.Instance) bool { return other.ID == in.ID }
		genuine := slices.ContainsFunc(r.reclaimed, isThis) || slices.ContainsFunc(r.scaledIn, isThis)
		isWarm := slices.ContainsFunc(r.members, func(m seenMember) bool { return m.InstanceID == in.ID && m.node == "" && in.State == ec2.Stopped })
		if in.State != ec2.Running && !isWarm && !genuine && !r.isSpareReplacement(in) {
			r.t.Errorf("instance %s is %s, although EC2 did not reclaim it", in.ID, in.State)
		}
	}
	var jobs batchv1.JobList
	if err := r.client.List(r.t.Context(), &jobs, client.InNamespace(chart.Namespace)); err != nil {
		r.t.Error(err)
	}
	for _, job := range jobs.Items {
		r.t.Errorf("the Job %s runs in Lifeboat's namespace", job.Name)
	}
}

// checkBystanders checks that no attack had an effect on a node that no message names.
func (r *redTeam) checkBystanders() {
	r.t.Helper()
	for _, in := range r.bystanders {
		node, err := r.node(r.t.Context(), in)
		if err != nil {
			r.t.Error(err)
			continue
		}
		if node.Spec.Unschedulable {
			r.t.Errorf("node %s is cordoned: %+v", node.Name, node.Spec.Taints)
		}
		for _, p := range r.pods.asked(in) {
			r.t.Errorf("pod %s on %s was asked to stop", p.name, node.Name)
		}
	}
	for _, in := range r.forged {
		for _, p := range r.pods.asked(in) {
			if p.grace != 30 {
				r.t.Errorf("a forged message gave pod %s %d s of its 30 s of grace", p.name, p.grace)
			}
		}
	}
}

// checkNoWriteLoop waits until Lifeboat stops writing. What the attacks left behind must not keep
// it busy.
func (r *redTeam) checkNoWriteLoop() {
	r.t.Helper()
	const quiet = 10 * time.Second
	last, since := -1, time.Now()
	r.until("ten seconds without a write of Lifeboat", 4*time.Minute, func(context.Context) (bool, error) {
		all := readAudit(r.t, r.audit)[chart.ControllerAccount]
		if len(all) != last {
			last, since = len(all), time.Now()
		}
		if len(all) == 0 {
			return false, fmt.Errorf("the audit log has no write of Lifeboat")
		}
		return time.Since(since) > quiet, fmt.Errorf("write %d is %s", len(all), all[len(all)-1])
	})
	r.t.Logf("Lifeboat made %d writes in all", last)
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// checkMemory checks the peak of lifeboatd's memory.
func (r *redTeam) checkMemory() {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.lifeboatPID()))
	if err != nil {
		r.t.Fatal(err)
	}
	m := peakMemory.FindSubmatch(text)
	if m == nil {
		r.t.Fatal("the kernel reports no peak of lifeboatd's memory")
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("lifeboatd used %d MiB at most", kib>>10)
	if kib<<10 > redTeamMemory {
		r.t.Errorf("lifeboatd used %d MiB, more than its limit of %d", kib>>10, redTeamMemory>>20)
	}
}
