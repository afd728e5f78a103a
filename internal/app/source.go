package app

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// sourceSpec is a notice source in the registry.
type sourceSpec struct {
	name  string
	where scope
	build func(deps) (intake.Source, error)
}

// deps are the dependencies of the sources.
type deps struct {
	Config
	mgr      manager.Manager
	cloud    aws.Config
	nodes    intake.NodeIndex
	groups   *groups       // nil if the Auto Scaling source is disabled
	reader   client.Reader // the cache
	all      nodeindex.Lister
	recorder *intake.Recorder
	metrics  *intake.Metrics
}

// scope is on which replicas a source runs.
type scope bool

const (
	everyReplica scope = false // on every replica
	onLeader     scope = true  // on the leader only
)

// sourceRunnable is a source as a manager Runnable.
type sourceRunnable struct {
	intake.Source
	where scope
}

var _ manager.LeaderElectionRunnable = sourceRunnable{}

// Start runs the source until ctx ends.
func (p sourceRunnable) Start(ctx context.Context) error { return p.Run(ctx) }

// NeedLeaderElection reports whether it runs on the leader only.
func (p sourceRunnable) NeedLeaderElection() bool { return p.where == onLeader }

// sourceNames are the valid values of --sources. CloudTrail has a flag of its own, because only
// those who ask for it need its permission.
func sourceNames() []string {
	var names []string
	for _, r := range sources() {
		if r.name != notice.SourceCloudTrail {
			names = append(names, r.name)
		}
	}
	return names
}
