package wire

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Protocol is a way to put an API call on the wire.
type Protocol int

// The protocols that AWS services speak.
const (
	// JSON10 is AWS JSON 1.0: the action in X-Amz-Target, JSON in and out.
	JSON10 Protocol = iota + 1
	// JSON11 is AWS JSON 1.1, which differs only in its content type.
	JSON11
	// Query is AWS Query: a form in, XML out.
	Query
	// EC2Query is EC2's dialect of Query, with flat lists and other envelopes.
	EC2Query
	// RESTJSON puts the action in the method and path, and JSON in the bodies.
	RESTJSON
)

// Service is one emulated AWS service as the router sees it.
type Service struct {
	// Name is the signing name, as in the credential scope: "sqs", "ec2".
	Name string
	// Protocol is used for requests whose own protocol is unknown.
	Protocol Protocol
	// TargetPrefix is what stands before the dot in X-Amz-Target: "AmazonSQS".
	TargetPrefix string
	// ErrorNamespace is put before error codes in JSON, as in
	// "com.amazonaws.sqs#QueueDoesNotExist"; empty for services that send
	// bare codes.
	ErrorNamespace string
	// QueryCompatible adds the x-amzn-query-error header to JSON errors, as
	// services do that spoke Query before (Smithy's awsQueryCompatible trait).
	QueryCompatible bool
	// XMLNamespace is the xmlns of XML answers.
	XMLNamespace string
	// Permission is the action that policies must allow for an action to be
	// performed, where it goes by another name; nil: all go by their own.
	Permission func(action string) string
	// Resource is the ARN that a request is about; empty or nil: none in particular.
	Resource func(r *Request) string
	// Accesses are the permissions that a request needs, if they are more than Permission on
	// Resource; nil: they are not.
	Accesses func(r *Request) []Access
	// Draws are the tokens that a request takes from the account's buckets; nil: the service has none.
	Draws func(r *Request) []Draw
	// Throttled is the service's answer to too many calls; nil: its
	// protocol's usual one.
	Throttled *Error
	// Unauthorized is the code of the answer to a call without permission in XML; empty: its
	// protocol's usual one.
	Unauthorized string
	// AnyRegion admits credentials of every region, as global endpoints do.
	AnyRegion bool
	// Actions is the action table, by AWS's names.
	Actions map[string]Action
	// Paths maps "METHOD /path/{param}" (net/http pattern syntax) to an action
	// name, for RESTJSON.
	Paths map[string]string
	// Background, if set, runs as long as the server serves. It must return
	// soon after ctx is done.
	Background func(ctx context.Context)
}

// Action answers one API call. A nil answer means that the action has no
// output. Errors other than *Error become InternalFailure.
type Action func(ctx context.Context, r *Request) (any, error)

// Do makes an Action of a function on a decoded input. A nil *Out means that
// the action has no output.
func Do[In, Out any](f func(ctx context.Context, r *Request, in *In) (*Out, error)) Action {
	return func(ctx context.Context, r *Request) (any, error) {
		in := new(In)
		if err := r.Decode(in); err != nil {
			return nil, err
		}
		out, err := f(ctx, r, in)
		if err != nil || out == nil {
			return nil, err
		}
		return out, nil
	}
}

// None is the output of actions that have none: they return (*None)(nil).
type None struct{}

// Scope is the place that an emulator plays: one account in one region.
type Scope struct {
	Account string
	Region  string
	// Clock is AWS's clock; nil: the machine's.
	Clock *Clock
}

// Identity is who makes a call.
type Identity struct {
	// UserID is the unique id, such as "AIDA…".
	UserID string
	// ARN names the user or role session.
	ARN string
	// RoleARN is the role of a role session.
	RoleARN string
	// InstanceARN is the EC2 instance that received the credentials of a role session.
	InstanceARN string
	// Expires is when the credentials expire, on the machine's clock; zero: never.
	Expires time.Time
}

// ARN names a resource of the scope, such as ARN("sqs", "orders").
func (s Scope) ARN(service, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", s.Partition(), service, s.Region, s.Account, resource)
}

// Partition is the ARN partition of the scope's region (the partitions of the AWS SDK).
func (s Scope) Partition() string {
	for prefix, partition := range map[string]string{
		"cn-": "aws-cn", "us-gov-": "aws-us-gov", "eusc-": "aws-eusc", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b",
		"eu-isoe-": "aws-iso-e", "us-isof-": "aws-iso-f",
	} {
		if strings.HasPrefix(s.Region, prefix) {
			return partition
		}
	}
	return "aws"
}

// check finds mistakes in the service's own table, at start-up.
func (s *Service) check() error {
	if s.Name == "" || s.Protocol == 0 || len(s.Actions) == 0 {
		return fmt.Errorf("service %q: needs a name, a protocol and actions", s.Name)
	}
	for pattern, action := range s.Paths {
		if s.Actions[action] == nil {
			return fmt.Errorf("service %s: path %q leads to unknown action %q", s.Name, pattern, action)
		}
	}
	return nil
}

// paths makes the mux that finds REST actions. Its handlers only note what
// was found.
func (s *Service) paths() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, action := range s.Paths {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if found, ok := w.(*foundAction); ok {
				found.name, found.request = action, r
			}
		})
	}
	return mux
}

// foundAction receives the outcome of a path look-up; it is no real response.
type foundAction struct {
	http.ResponseWriter

	name    string
	request *http.Request
}

func (*foundAction) Header() http.Header         { return http.Header{} }
func (*foundAction) Write(b []byte) (int, error) { return len(b), nil }
func (*foundAction) WriteHeader(int)             {}
