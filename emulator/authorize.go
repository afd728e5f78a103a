package emulator

import (
	"cmp"
	"maps"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// authorize decides as IAM does for callers and resources of one account: a Deny anywhere wins, and
// an Allow in the policy of the caller or of the resource is enough (IAM User Guide, "Policy
// evaluation logic"). Only roles with policies are limited; see [iam.State.PutRolePolicy].
func (s *Server) authorize(r *wire.Request, a wire.Access) wire.Refusal {
	who := s.States.STS.Identify(r.AccessKey)
	keys := r.Keys()
	keys["aws:RequestedRegion"] = []string{s.scope.Region}
	keys["aws:PrincipalAccount"] = []string{s.scope.Account}
	// For a role session the key has the role (IAM User Guide, "AWS global condition context keys").
	keys["aws:PrincipalArn"] = []string{cmp.Or(who.RoleARN, who.ARN)}
	if who.InstanceARN != "" {
		keys["ec2:SourceInstanceARN"] = []string{who.InstanceARN}
	}
	maps.Copy(keys, a.Keys)
	request := policy.Request{
		ARN: who.ARN, RoleARN: who.RoleARN, Account: s.scope.Account, Action: a.Action, Resource: cmp.Or(a.Resource, "*"), Keys: keys,
	}
	byResource := a.Policy.Decide(request)
	if byResource == policy.Denied {
		return wire.DeniedByResource
	}
	allowed := byResource == policy.Allowed
	policies, limited := s.States.IAM.RolePolicies(who.RoleARN)
	for _, p := range policies {
		switch p.Decide(request) {
		case policy.Denied:
			return wire.DeniedByIdentity
		case policy.Allowed:
			allowed = true
		case policy.Silent:
		}
	}
	if limited && !allowed {
		return wire.NotAllowed(a.Action)
	}
	return ""
}
