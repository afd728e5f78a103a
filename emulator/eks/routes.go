package eks

import (
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is EKS on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:     "eks",
		Protocol: wire.RESTJSON,
		Resource: func(r *wire.Request) string {
			if name := r.Param("name"); name != "" {
				return s.scope.ARN("eks", "cluster/"+name)
			}
			return s.scope.ARN("eks", "cluster/*")
		},
		Actions: map[string]wire.Action{
			"DescribeCluster": wire.Do(a.describeCluster),
			"ListClusters":    wire.Do(a.listClusters),
		},
		Paths: map[string]string{
			"GET /clusters":        "ListClusters",
			"GET /clusters/{name}": "DescribeCluster",
		},
	}
}
