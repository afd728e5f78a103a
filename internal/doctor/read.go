package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// maxConcurrentCalls limits the number of concurrent AWS calls.
const maxConcurrentCalls = 4

// ReadAccount reads the wiring in an account. The snapshot lists calls that AWS
// denied or that failed, and records a missing queue as a fact. The error means that
// nothing could be read: no credentials, no connection, or the wrong account or region.
func ReadAccount(ctx context.Context, clients Clients, target Target) (snapshot.Snapshot, error) {
	l := &accountReader{clients: clients, target: target}
	return l.readParts(ctx, l.readQueue, l.readRules, l.readTopics, l.readOtherQueues, l.tryPermissions, l.testPatterns, l.measureGrowth)
}

// readBrief reads only the queue, the rules that fill it and those with Lifeboat's
// names.
func readBrief(ctx context.Context, clients Clients, target Target) (snapshot.Snapshot, error) {
	l := &accountReader{clients: clients, target: target, brief: true}
	return l.readParts(ctx, l.readQueue, l.readRules, l.readTopics)
}

// readParts runs the parts in order.
func (l *accountReader) readParts(ctx context.Context, parts ...func(context.Context) error) (snapshot.Snapshot, error) {
	l.out.Account, l.out.Region, l.out.Caller = l.target.Desired.Account, l.target.Desired.Region, l.target.Caller
	if err := l.checkLocation(); err != nil {
		return snapshot.Snapshot{}, err
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return snapshot.Snapshot{}, err
		}
	}
	if l.succeeded == 0 {
		return snapshot.Snapshot{}, fmt.Errorf("reading the wiring: %w", cmp.Or(l.failure, errDenied(l.out.Denied)))
	}
	slices.SortFunc(l.out.Rules, func(a, b snapshot.Rule) int { return strings.Compare(a.Bus+"/"+a.Name, b.Bus+"/"+b.Name) })
	return l.out, nil
}

// accountReader reads one account.
type accountReader struct {
	clients Clients
	target  Target
	out     snapshot.Snapshot
	url     string // of the queue
	brief   bool

	mu        sync.Mutex // guards the fields below, and out while calls run concurrently
	succeeded int        // number of successful calls
	failure   error      // of the first call that failed, and was not denied
}

// DeniedError means that AWS denied every call.
type DeniedError struct {
	// Actions are the denied IAM actions, for example sqs:GetQueueUrl.
	Actions []string
}

// Error returns the denied actions.
func (e *DeniedError) Error() string {
	return "AWS denied these actions: " + joinList(e.Actions) + "; use credentials that have these permissions"
}

func errDenied(denied []snapshot.Denial) error {
	return &DeniedError{Actions: deniedActions(denied)}
}

// WrongLocationError means that the queue is not in the account or region of the
// credentials.
type WrongLocationError struct {
	// What is "account" or "region". Actual is that of the queue, and Expected that
	// of the credentials or the configuration.
	QueueURL, What, Actual, Expected string
}

// Error returns both locations.
func (e *WrongLocationError) Error() string {
	return fmt.Sprintf("the queue %s is in %s %s, but the credentials or the configuration are for %s", e.QueueURL, e.What, e.Actual, e.Expected)
}

// checkLocation compares the account and region of the queue's URL with those of the
// credentials.
func (l *accountReader) checkLocation() error {
	u, err := url.Parse(l.target.QueueURL)
	if err != nil {
		return fmt.Errorf("parsing the URL of the queue: %w", err)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if want := l.target.Desired.Account; len(parts) == 2 && want != "" && parts[0] != want {
		return &WrongLocationError{l.target.QueueURL, "account", parts[0], want}
	}
	if region, want := RegionOfQueue(l.target.QueueURL), l.target.Desired.Region; region != "" && want != "" && region != want {
		return &WrongLocationError{l.target.QueueURL, "region", region, want}
	}
	return nil
}

// RegionOfQueue returns the region in the URL of a queue, or "" if the URL has none
// (SQS Developer Guide, "Queue URLs": sqs.<region>.amazonaws.com, or the domain of another
// partition).
func RegionOfQueue(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	host, _ := strings.CutPrefix(u.Hostname(), "sqs.")
	region, domain, _ := strings.Cut(host, ".")
	if host != u.Hostname() && domain == snapshot.URLSuffix(snapshot.Partition(region)) {
		return region
	}
	return ""
}

// recordCall records the result of a call. A call that was denied or failed is not an
// error: its answer is unknown, which becomes a finding, and the others go on. It is an
// error if AWS did not answer this call nor any before it.
func (l *accountReader) recordCall(action, object string, err error) (unknown bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.succeeded++
		return false, nil
	}
	d := snapshot.Denial{Action: action, Object: object}
	if !isDenied(err) {
		failed := fmt.Errorf("calling AWS (%s of %s): %w", action, object, err)
		if l.succeeded == 0 && code(err) == "" {
			return false, failed
		}
		d.Failure, l.failure = shortError(err), cmp.Or(l.failure, failed)
	}
	if !slices.ContainsFunc(l.out.Denied, func(o snapshot.Denial) bool { return o.Action == action && o.Object == object }) {
		l.out.Denied = append(l.out.Denied, d)
	}
	return true, nil
}

// shortError returns the code and the message of an AWS error, without request ids,
// which differ from call to call.
func shortError(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": ")
	}
	return err.Error()
}

func isDenied(err error) bool {
	switch code(err) {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthorizationError":
		return true
	}
	return false
}

// code returns the code of an AWS error, or "".
func code(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// recordSkew compares the local clock with the Date header of a response. The header
// has whole seconds, so half a second is added: the error is then at most half a
// second.
func (l *accountReader) recordSkew(metadata middleware.Metadata) {
	server, ok := awsmiddleware.GetServerTime(metadata)
	local, received := awsmiddleware.GetResponseAt(metadata)
	if ok && received && !server.IsZero() {
		skew := local.Sub(server.Add(500 * time.Millisecond))
		l.out.Skew = &skew
	}
}
