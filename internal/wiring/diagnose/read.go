package diagnose

import (
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

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// calls is how many calls to AWS are under way at a time.
const calls = 4

// Look looks at the wiring in an account. What it may not look at is in the
// snapshot as denied; a queue that is not there is a fact. The error says that
// nothing could be looked at: no credentials, nobody answers, the wrong account or
// region.
func Look(ctx context.Context, clients Clients, target Target) (snapshot.Snapshot, error) {
	l := &look{clients: clients, target: target}
	return l.all(ctx, l.queue, l.rules, l.otherQueues, l.permissions, l.engine, l.growth)
}

// glance looks at the queue, the rules that fill it and those with our names, and
// at nothing else.
func glance(ctx context.Context, clients Clients, target Target) (snapshot.Snapshot, error) {
	l := &look{clients: clients, target: target, brief: true}
	return l.all(ctx, l.queue, l.rules)
}

// all looks at one part after the other.
func (l *look) all(ctx context.Context, parts ...func(context.Context) error) (snapshot.Snapshot, error) {
	l.out.Account, l.out.Region, l.out.Caller = l.target.Want.Account, l.target.Want.Region, l.target.Caller
	if err := l.placed(); err != nil {
		return snapshot.Snapshot{}, err
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return snapshot.Snapshot{}, err
		}
	}
	if l.seen == 0 {
		return snapshot.Snapshot{}, fmt.Errorf("looking at the wiring: %w", errDenied(l.out.Denied))
	}
	slices.SortFunc(l.out.Rules, func(a, b snapshot.Rule) int { return strings.Compare(a.Bus+"/"+a.Name, b.Bus+"/"+b.Name) })
	return l.out, nil
}

// look is one look.
type look struct {
	clients Clients
	target  Target
	out     snapshot.Snapshot
	url     string // of the queue
	brief   bool

	mu   sync.Mutex // guards what follows, and out while calls run in parallel
	seen int        // calls that were answered
}

// DeniedError says that AWS refused everything that was asked of it.
type DeniedError struct {
	// Actions are the actions, such as sqs:GetQueueUrl.
	Actions []string
}

// Error names the actions.
func (e *DeniedError) Error() string {
	return "these credentials may not look: denied are " + list(e.Actions)
}

func errDenied(denied []snapshot.Denial) error {
	return &DeniedError{Actions: deniedActions(denied)}
}

// MisplacedError says that the queue is not where the credentials lead.
type MisplacedError struct {
	// QueueURL is the queue, What "account" or "region", Is where it is, and Want
	// where the credentials or the configuration lead.
	QueueURL, What, Is, Want string
}

// Error says so.
func (e *MisplacedError) Error() string {
	return fmt.Sprintf("the queue %s is in %s %s, and %s is where it was looked for", e.QueueURL, e.What, e.Is, e.Want)
}

// placed checks that the queue's address and the credentials lead to one place.
func (l *look) placed() error {
	u, err := url.Parse(l.target.QueueURL)
	if err != nil {
		return fmt.Errorf("reading the address of the queue: %w", err)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if want := l.target.Want.Account; len(parts) == 2 && want != "" && parts[0] != want {
		return &MisplacedError{l.target.QueueURL, "account", parts[0], want}
	}
	if region, want := RegionOfQueue(l.target.QueueURL), l.target.Want.Region; region != "" && want != "" && region != want {
		return &MisplacedError{l.target.QueueURL, "region", region, want}
	}
	return nil
}

// RegionOfQueue is the region in the address of a queue, or "" where it has none
// (SQS Developer Guide, "Queue URLs": sqs.<region>.amazonaws.com).
func RegionOfQueue(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	parts := strings.Split(u.Hostname(), ".")
	if len(parts) >= 4 && parts[0] == "sqs" && strings.HasPrefix(parts[2], "amazonaws") {
		return parts[1]
	}
	return ""
}

// answered notes how a call went. It returns the error unless AWS merely refused,
// which is a finding, not the end of looking.
func (l *look) answered(action, object string, err error) (denied bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.seen++
		return false, nil
	case isDenied(err):
		d := snapshot.Denial{Action: action, Object: object}
		if !slices.Contains(l.out.Denied, d) {
			l.out.Denied = append(l.out.Denied, d)
		}
		return true, nil
	}
	return false, fmt.Errorf("asking AWS (%s of %s): %w", action, object, err)
}

func isDenied(err error) bool {
	switch code(err) {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthorizationError":
		return true
	}
	return false
}

// code is the code of an error of AWS, or "".
func code(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// clock compares the clock here with the Date header of an answer, which has whole
// seconds: half of one is added, so that the error is half a second at most.
func (l *look) clock(metadata middleware.Metadata) {
	server, ok := awsmiddleware.GetServerTime(metadata)
	here, also := awsmiddleware.GetResponseAt(metadata)
	if ok && also && !server.IsZero() {
		skew := here.Sub(server.Add(500 * time.Millisecond))
		l.out.Skew = &skew
	}
}
