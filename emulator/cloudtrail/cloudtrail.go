// Package cloudtrail emulates what CloudTrail records of management events: each call that
// changes something, or tries to. It records Auto Scaling and EC2.
//
// The event history has them in every account ([Service]). EventBridge gets an "AWS API Call
// via CloudTrail" event of them only with a trail, from [State.StartLogging] on.
package cloudtrail

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// State is the account's event history and its trail. It is safe for concurrent use.
type State struct {
	scope    wire.Scope
	identify func(accessKey string) wire.Identity
	emit     func(events.Event)

	mu      sync.Mutex
	logging bool
	history []entry // the oldest first
	delay   time.Duration
	bucket  *wire.Bucket
}

// New is an empty history, and a trail that does not log. Identify tells who holds an access
// key; emit receives the events for EventBridge.
func New(scope wire.Scope, identify func(accessKey string) wire.Identity, emit func(events.Event)) *State {
	return &State{scope: scope, identify: identify, emit: emit, delay: usualDelay, bucket: wire.NewBucket(lookupsPerSecond, lookupsPerSecond, time.Now())}
}

// StartLogging begins to send calls to EventBridge.
func (s *State) StartLogging() { s.set(true) }

// StopLogging ends it.
func (s *State) StopLogging() { s.set(false) }

func (s *State) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logging = on
}

// record is what CloudTrail writes of a call (AWS CloudTrail User Guide, CloudTrail
// record contents).
type record struct {
	EventVersion string         `json:"eventVersion"`
	UserIdentity identity       `json:"userIdentity"`
	EventTime    string         `json:"eventTime"`
	EventSource  string         `json:"eventSource"`
	EventName    string         `json:"eventName"`
	Region       string         `json:"awsRegion"`
	SourceIP     string         `json:"sourceIPAddress"`
	UserAgent    string         `json:"userAgent"`
	ErrorCode    string         `json:"errorCode,omitempty"`
	ErrorMessage string         `json:"errorMessage,omitempty"`
	Parameters   map[string]any `json:"requestParameters"`
	Response     map[string]any `json:"responseElements"`
	RequestID    string         `json:"requestID"`
	EventID      string         `json:"eventID"`
	ReadOnly     bool           `json:"readOnly"`
	EventType    string         `json:"eventType"`
	AccountID    string         `json:"recipientAccountId"`
}

type identity struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
	ARN         string `json:"arn"`
	AccountID   string `json:"accountId"`
	AccessKeyID string `json:"accessKeyId"`
}

// Record notes a call and how it ended: nil is well. On AWS the event of a trail may come
// minutes later; here it comes at once. That of the history is late: see [State.SetDelay].
func (s *State) Record(r *wire.Request, failure *wire.Error) {
	if !covered(r) {
		return
	}
	who := s.identify(r.AccessKey)
	now := time.Now()
	rec := record{
		EventVersion: "1.11", EventTime: now.UTC().Format("2006-01-02T15:04:05Z"),
		UserIdentity: identity{kind(who.ARN), who.UserID, who.ARN, s.scope.Account, r.AccessKey},
		EventSource:  r.Service + ".amazonaws.com", EventName: r.Action, Region: s.scope.Region,
		SourceIP: r.SourceIP(), UserAgent: r.UserAgent(), Parameters: parameters(r), RequestID: r.ID,
		EventID: string(uuid.NewUUID()), EventType: "AwsApiCall", AccountID: s.scope.Account,
	}
	if failure != nil {
		rec.ErrorCode, rec.ErrorMessage = errorCode(r, failure), failure.Message
	}
	if !s.remember(entry{at: now, who: who, record: rec}) {
		return
	}
	s.emit(events.Event{
		Source: "aws." + r.Service, DetailType: "AWS API Call via CloudTrail", Time: now, Detail: events.Detail(rec),
	})
}

// covered reports whether a call is recorded. Those that only read are not delivered
// (EventBridge User Guide, AWS service events delivered via CloudTrail).
func covered(r *wire.Request) bool {
	for _, reads := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(r.Action, reads) {
			return false
		}
	}
	return r.Service == "autoscaling" || r.Service == "ec2"
}

// errorCode is the name that CloudTrail has for an error, which is not always the one
// that the caller sees.
func errorCode(r *wire.Request, e *wire.Error) string {
	code := e.NameIn(r.Protocol)
	switch {
	case code == "ValidationError":
		return "ValidationException"
	case r.Service == "ec2" && e.Status < 500:
		return "Client." + code
	default:
		return code
	}
}

func kind(arn string) string {
	if strings.Contains(arn, ":assumed-role/") {
		return "AssumedRole"
	}
	return "IAMUser"
}

// parameters are those of the call, in lower camel case.
func parameters(r *wire.Request) map[string]any {
	out := map[string]any{}
	for name, values := range r.Form {
		if name != "Action" && name != "Version" && len(values) > 0 {
			first := []rune(name)
			first[0] = unicode.ToLower(first[0])
			out[string(first)] = values[0]
		}
	}
	return out
}
