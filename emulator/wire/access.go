package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
)

// Access is one permission that a call needs. A call can need several, such as one for each
// instance that it terminates.
type Access struct {
	// Action is the permission, such as "ec2:RunInstances".
	Action string
	// Resource is an ARN; empty for actions without a resource.
	Resource string
	// Keys are the condition keys of the action and the resource. [Request.Keys] has the others.
	Keys map[string][]string
	// Policy is the policy of the resource; nil: it has none.
	Policy *policy.Policy
}

// Refusal is why a call is not authorized, in the words of AWS (IAM User Guide, "Troubleshoot
// access denied error messages"). If it is empty, the call is authorized.
type Refusal string

// The refusals of explicit statements.
const (
	DeniedByIdentity Refusal = "with an explicit deny in an identity-based policy"
	DeniedByResource Refusal = "with an explicit deny in a resource-based policy"
)

// NotAllowed is the refusal for a permission that no policy of the caller grants.
func NotAllowed(action string) Refusal {
	return Refusal("because no identity-based policy allows the " + action + " action")
}

// Keys are the condition keys that every call has. The emulator speaks plain HTTP, in place of an
// endpoint with TLS: only the header X-Forwarded-Proto: http makes a call insecure.
func (r *Request) Keys() map[string][]string {
	return map[string][]string{
		"aws:SecureTransport":       {strconv.FormatBool(r.http.Header.Get("X-Forwarded-Proto") != "http")},
		"aws:UserAgent":             {r.UserAgent()},
		"aws:PrincipalIsAWSService": {"false"},
	}
}

// TagKeys are the condition keys for the tags of a resource (with the prefix "aws:ResourceTag/") or
// of a request ("aws:RequestTag/").
func TagKeys(prefix string, tags map[string]string) map[string][]string {
	keys := map[string][]string{}
	for key, value := range tags {
		keys[prefix+key] = []string{value}
	}
	return keys
}

// accesses are the permissions that a call needs.
func (s *Service) accesses(r *Request) []Access {
	if s.Accesses != nil {
		if list := s.Accesses(r); list != nil {
			return list
		}
	}
	return []Access{s.Access(r)}
}

// Access is the permission of a call under the name and for the resource of the service's table.
func (s *Service) Access(r *Request) Access {
	a := Access{Action: s.Name + ":" + s.permission(r.Action)}
	if s.Resource != nil {
		a.Resource = s.Resource(r)
	}
	return a
}

// Authorize has the gate check every permission of every call. Refuse returns why a call may not
// use a permission. Call it before the first call.
func (g *Gate) Authorize(refuse func(*Request, Access) Refusal) { g.refuse = refuse }

// authorize rejects a call that lacks a permission.
func (g *Gate) authorize(s *Service, r *Request) error {
	if g.refuse == nil {
		return nil
	}
	for _, a := range s.accesses(r) {
		if why := g.refuse(r, a); why != "" {
			return g.unauthorized(s, r, a, why)
		}
	}
	return nil
}

// unauthorized is the error for a missing permission, in each protocol's own shape (IAM User Guide,
// Troubleshooting access denied error messages; EC2 API Reference, Error codes).
func (g *Gate) unauthorized(s *Service, r *Request, a Access, why Refusal) error {
	on := ""
	if a.Resource != "" && a.Resource != "*" {
		on = " on resource: " + a.Resource
	}
	message := fmt.Sprintf("User: %s is not authorized to perform: %s%s %s", g.identify(r.AccessKey).ARN, a.Action, on, why)
	e := &Error{Status: http.StatusForbidden, Code: "AccessDeniedException", QueryCode: cmp.Or(s.Unauthorized, "AccessDenied"), Namespace: Coral, Message: message}
	switch r.Protocol {
	case EC2Query:
		e.QueryCode = "UnauthorizedOperation"
		e.Message = "You are not authorized to perform this operation. " + message
	case JSON11:
		e.Status, e.Namespace = http.StatusBadRequest, s.ErrorNamespace
	case JSON10, Query, RESTJSON:
	}
	return e
}
