package eks

import (
	"context"
	"encoding/base64"
	"maps"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

// The members of the answers (Amazon EKS API Reference, Cluster).

type certificate struct {
	Data []byte `json:"data"` // in base64, as encoding/json does it
}

type networkConfig struct {
	ServiceCIDR string `json:"serviceIpv4Cidr"`
	IPFamily    string `json:"ipFamily"`
}

type accessConfig struct {
	Mode string `json:"authenticationMode"`
}

type vpcConfig struct {
	Subnets       []string `json:"subnetIds"`
	Groups        []string `json:"securityGroupIds"`
	PublicAccess  bool     `json:"endpointPublicAccess"`
	PrivateAccess bool     `json:"endpointPrivateAccess"`
	PublicCIDRs   []string `json:"publicAccessCidrs"`
}

type clusterReply struct {
	Name            string            `json:"name"`
	ARN             string            `json:"arn"`
	CreatedAt       wire.Time         `json:"createdAt"`
	Version         string            `json:"version"`
	Endpoint        string            `json:"endpoint"`
	VPC             vpcConfig         `json:"resourcesVpcConfig"`
	Network         networkConfig     `json:"kubernetesNetworkConfig"`
	Status          string            `json:"status"`
	CA              certificate       `json:"certificateAuthority"`
	PlatformVersion string            `json:"platformVersion"`
	Tags            map[string]string `json:"tags"`
	Access          accessConfig      `json:"accessConfig"`
}

func (a *api) toWire(c cluster) clusterReply {
	tags := map[string]string{}
	maps.Copy(tags, c.Tags)
	return clusterReply{
		Name: c.Name, ARN: a.state.scope.ARN("eks", "cluster/"+c.Name), CreatedAt: wire.Time{Time: c.created}, Version: c.Version,
		Endpoint: c.Endpoint, VPC: vpcConfig{Subnets: []string{}, Groups: []string{}, PublicAccess: true, PublicCIDRs: []string{"0.0.0.0/0"}},
		Network: networkConfig{c.ServiceCIDR, "ipv4"}, Status: "ACTIVE", CA: certificate{c.CA}, PlatformVersion: "eks.1", Tags: tags,
		Access: accessConfig{"API_AND_CONFIG_MAP"},
	}
}

type describeOutput struct {
	Cluster clusterReply `json:"cluster"`
}

func (a *api) describeCluster(_ context.Context, r *wire.Request, _ *wire.None) (*describeOutput, error) {
	c, err := a.state.find(r.Param("name"))
	if err != nil {
		return nil, err
	}
	return &describeOutput{a.toWire(c)}, nil
}

type listOutput struct {
	Clusters  []string `json:"clusters"`
	NextToken string   `json:"nextToken,omitempty"`
}

// listClusters gives 100 names at a time by default.
func (a *api) listClusters(_ context.Context, r *wire.Request, _ *wire.None) (*listOutput, error) {
	list, size, start := a.state.names(), 100, 0
	if text := r.Param("maxResults"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 1 || size > 100 {
			return nil, wire.Errorf("InvalidParameterException", "maxResults needs to be 1 to 100; it is %s", text)
		}
	}
	if token := r.Param("nextToken"); token != "" {
		raw, decodeErr := base64.URLEncoding.DecodeString(token)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, wire.Errorf("InvalidParameterException", "nextToken is not valid")
		}
		start = min(n, len(list))
	}
	out := &listOutput{Clusters: []string{}}
	end := min(start+size, len(list))
	out.Clusters = append(out.Clusters, list[start:end]...)
	if end < len(list) {
		out.NextToken = base64.URLEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return out, nil
}
