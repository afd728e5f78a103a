package app

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
)

// registered is a source of notices in the registry.
type registered struct {
	name  string
	where place
	build func(deps) (intake.Source, error)
}

// deps are what sources are made of.
type deps struct {
	Config
	cloud    aws.Config
	nodes    intake.NodeIndex
	groups   *groups       // nil where Auto Scaling is not listened to
	reader   client.Reader // the cache
	all      nodeindex.Lister
	recorder *intake.Recorder
	metrics  *intake.Metrics
}

// place is where a source runs.
type place bool

const (
	everywhere place = false // on every replica
	onLeader   place = true  // on the leader alone
)

// placed is a source in its place.
type placed struct {
	intake.Source
	where place
}

var _ manager.LeaderElectionRunnable = placed{}

// Start runs the source until ctx ends.
func (p placed) Start(ctx context.Context) error { return p.Run(ctx) }

// NeedLeaderElection reports whether it runs on the leader alone.
func (p placed) NeedLeaderElection() bool { return p.where == onLeader }

// sourceNames are the names of all sources, for --sources.
func sourceNames() []string {
	var names []string
	for _, r := range sources() {
		names = append(names, r.name)
	}
	return names
}
