package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// maxBody is the most that SQS carries in a message (Amazon SQS API
	// Reference, MaximumMessageSize).
	maxBody = 1 << 20
	// maxID is the most that the CRD takes as the id of a notice.
	maxID = 128
	// oldest and newest are years within which a time is plausible: EC2 began
	// in 2006, and what is too far away could not be recorded.
	oldest, newest = 2006, 9000
	// autoScaling stands for a source in messages that Auto Scaling sends
	// without EventBridge.
	autoScaling = "AWS Auto Scaling"
)

// instanceID is what EC2 calls instances: 8 hexadecimal digits until 2016, 17
// since (EC2 User Guide, "Resource IDs").
var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// decoded is what a message says: notices, or why it is of no concern.
type decoded struct {
	notices   []notice.Notice
	unconcern string
	// ordinary: of no concern, and nobody needs to be told.
	ordinary bool
	// what tells the sort of message, for logs: its source and detail-type.
	what string
}

// unreadableError says what of a message could not be read.
type unreadableError struct {
	// field is the part of the message, such as detail.instance-id: one of a
	// closed list, so that it may become a metric's label.
	field string
	// cause says what was found there and what was expected.
	cause string
}

func (e *unreadableError) Error() string { return "reading " + e.field + ": " + e.cause }

func unreadable(field, cause string, args ...any) error {
	return &unreadableError{field: field, cause: fmt.Sprintf(cause, args...)}
}

// decode reads the body of a message. It is tolerant where AWS is known to
// vary: version or resources missing, resources a single string, fields that
// it does not know, spaces around an id, detail_type for detail-type, a body
// wrapped by SNS. Its errors are *unreadableError.
func decode(body string) (decoded, error) {
	if len(body) > maxBody {
		return decoded{}, unreadable("body", "%d bytes: expected at most %d", len(body), maxBody)
	}
	e, err := open([]byte(body))
	if err != nil {
		return decoded{}, err
	}
	what := quote(e.Source) + " " + quote(e.DetailType)
	r := find(e.Source, e.DetailType)
	switch {
	case r == nil:
		return decoded{unconcern: "this release knows no such kind", what: what}, nil
	case r.read == nil:
		return decoded{unconcern: r.unconcern, what: what}, nil
	}
	d, err := r.read(e)
	d.what = what
	return d, err
}

// envelope is what all messages have in common (EventBridge User Guide,
// "Events in Amazon EventBridge"). Field names are matched without regard to
// case, as encoding/json does.
type envelope struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Underscore string          `json:"detail_type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  resources       `json:"resources"`
	Detail     json.RawMessage `json:"detail"`

	// SNS's wrapper (Amazon SNS Developer Guide, "HTTP/HTTPS notification
	// JSON format"; SQS gets the same).
	Type    string `json:"Type"`
	Message string `json:"Message"`

	// Auto Scaling's own message, without EventBridge (Amazon EC2 Auto
	// Scaling User Guide, "Prepare to add a lifecycle hook").
	Service             string `json:"Service"`
	Event               string `json:"Event"`
	LifecycleTransition string `json:"LifecycleTransition"`
}

// open finds the envelope in a body.
func open(body []byte) (*envelope, error) {
	e, err := parse(body)
	if err == nil && e.Type == "Notification" && e.DetailType == "" && e.Message != "" {
		e, err = parse([]byte(e.Message))
		if err != nil {
			return nil, unreadable("Message", "what SNS wrapped: %v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if e.DetailType == "" && e.Service == autoScaling {
		e.Source, e.DetailType = autoScaling, e.Event
		if e.DetailType == "" {
			e.DetailType = e.LifecycleTransition
		}
	}
	switch {
	case e.DetailType == "":
		return nil, unreadable("detail-type", "missing: expected EventBridge's whole message; if the rule's target has an input transformer, remove it")
	case e.Source == "":
		return nil, unreadable("source", "missing: expected EventBridge's whole message, with a source such as aws.ec2")
	}
	return e, nil
}

func parse(body []byte) (*envelope, error) {
	var e envelope
	if err := into("", body, &e); err != nil {
		return nil, err
	}
	if e.DetailType == "" {
		e.DetailType = e.Underscore
	}
	return &e, nil
}

// resources takes a list, a single string, or anything else for nothing: the
// ids in it are only needed where detail has none.
type resources []string

// UnmarshalJSON never fails.
func (r *resources) UnmarshalJSON(data []byte) error {
	var list []any
	var one string
	switch {
	case json.Unmarshal(data, &list) == nil:
		*r = nil
		for _, entry := range list {
			if s, ok := entry.(string); ok {
				*r = append(*r, s)
			}
		}
	case json.Unmarshal(data, &one) == nil:
		*r = resources{one}
	default:
		*r = nil
	}
	return nil
}

// into reads the detail.
func (e *envelope) into(detail any) error { return into("detail", e.Detail, detail) }

// into reads a JSON object that stands in the field parent, or the whole body
// where parent is empty. All members that are asked for are strings.
func into(parent string, data []byte, object any) error {
	name := parent
	if parent == "" {
		name = "body"
	}
	if len(data) == 0 {
		return unreadable(name, "missing: expected a JSON object")
	}
	err := json.Unmarshal(data, object)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrongType):
		return unreadable(name, "expected a JSON object: %v", err)
	case wrongType.Field == "":
		return unreadable(name, "found a JSON %s, expected a JSON object", wrongType.Value)
	}
	return unreadable(strings.TrimPrefix(parent+"."+wrongType.Field, "."), "found a JSON %s, expected a string", wrongType.Value)
}

// notice reads what every notice has.
func (e *envelope) notice(kind string) (notice.Notice, error) {
	id, err := e.instance()
	if err != nil {
		return notice.Notice{}, err
	}
	issued, err := time.Parse(time.RFC3339, strings.TrimSpace(e.Time))
	if err != nil || issued.Year() < oldest || issued.Year() > newest {
		return notice.Notice{}, unreadable("time", "%s is no time: expected one such as 2026-05-11T08:14:02Z", quote(e.Time))
	}
	n := notice.Notice{
		Notice:     v1alpha1.Notice{ID: strings.TrimSpace(e.ID), Kind: kind, Source: Name, Time: metav1.NewTime(issued.UTC())},
		InstanceID: id,
		Account:    strings.TrimSpace(e.Account),
		Region:     strings.TrimSpace(e.Region),
	}
	if n.ID == "" || len(n.ID) > maxID {
		n.ID = derivedID(kind, id, issued)
	}
	return n, nil
}

// instance is the instance's id: detail has it, else the resource does, after
// the last slash. Spot warnings have the availability zone where an ARN has
// the region, and no account (EC2 User Guide, "Spot Instance interruption
// notices"), so nothing else of the ARN is of use.
func (e *envelope) instance() (string, error) {
	var detail struct {
		InstanceID string `json:"instance-id"`
	}
	if err := e.into(&detail); err != nil {
		return "", err
	}
	id := strings.TrimSpace(detail.InstanceID)
	if id == "" {
		for _, arn := range e.Resources {
			if last := strings.TrimSpace(arn[strings.LastIndexByte(arn, '/')+1:]); instanceID.MatchString(last) {
				return last, nil
			}
		}
		return "", unreadable("detail.instance-id", "missing, and no resource names an instance: expected an id such as i-0a1b2c3d4e5f60718")
	}
	if !instanceID.MatchString(id) {
		return "", unreadable("detail.instance-id", "%s is no instance id: expected i- and 8 to 17 hexadecimal digits", quote(id))
	}
	return id, nil
}

// derivedID stands in where the message has no id that can be recorded: what
// says the same has the same id.
func derivedID(kind, instance string, issued time.Time) string {
	sum := sha256.Sum256([]byte(kind + "\n" + instance + "\n" + issued.UTC().Format(time.RFC3339Nano)))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// maxQuote is how much of a value out of a message goes into a log line.
const maxQuote = 80

func quote(s string) string {
	if len(s) > maxQuote {
		s = strings.ToValidUTF8(s[:maxQuote], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
