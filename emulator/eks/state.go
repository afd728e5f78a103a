package eks

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Cluster is the registered data of a cluster.
type Cluster struct {
	Name string
	// Version is the minor version, such as "1.36".
	Version string
	// Endpoint is the URL of the API server.
	Endpoint string
	// CA is the certificate authority of the API server, in PEM.
	CA []byte
	// ServiceCIDR is the network of the services' addresses. Empty is EKS's own
	// default, 10.100.0.0/16.
	ServiceCIDR string
	// Tags are the cluster's tags.
	Tags map[string]string
}

// defaultServiceCIDR is what EKS takes unless the VPC is in 10.0.0.0/8 too (Amazon EKS
// API Reference, KubernetesNetworkConfigRequest).
const defaultServiceCIDR = "10.100.0.0/16"

// State is the clusters of the account. It is safe for concurrent use.
type State struct {
	scope wire.Scope

	mu       sync.Mutex
	clusters map[string]cluster
}

type cluster struct {
	Cluster

	created time.Time
}

// New is a state without clusters.
func New(scope wire.Scope) *State {
	return &State{scope: scope, clusters: map[string]cluster{}}
}

// SetCluster tells of a cluster, which is active at once, or of another state of it.
func (s *State) SetCluster(c Cluster) {
	c.ServiceCIDR = cmp.Or(c.ServiceCIDR, defaultServiceCIDR)
	s.mu.Lock()
	defer s.mu.Unlock()
	created := s.clusters[c.Name].created
	if created.IsZero() {
		created = time.Now()
	}
	s.clusters[c.Name] = cluster{c, created}
}

// RemoveCluster forgets a cluster.
func (s *State) RemoveCluster(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, name)
}

// names lists the clusters by name.
func (s *State) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.clusters))
}

func (s *State) find(name string) (cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clusters[name]
	if !ok {
		e := wire.Errorf("ResourceNotFoundException", "No cluster found for name: %s.", name)
		e.Status = http.StatusNotFound
		return cluster{}, e
	}
	return c, nil
}
