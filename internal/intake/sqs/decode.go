package sqs

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// maxBody is the limit of SQS for a message (Amazon SQS API Reference, MaximumMessageSize).
	maxBody = 1 << 20
	// maxID is the limit of the CRD for the id of a notice.
	maxID = 128
	// oldest and newest bound plausible years: EC2 began in 2006, and times too far away cannot
	// be recorded.
	oldest, newest = 2006, 9000
)

// instanceID matches EC2 instance ids: 8 hexadecimal digits until 2016, 17 since (EC2 User
// Guide, "Resource IDs").
var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// decoded is the content of a message: notices of instances, of groups of instances, or of other
// objects; or why it is ignored.
type decoded struct {
	notices []notice.Notice
	groups  []group
	reports []intake.Report
	probe   *intake.Probe
	// scaling is the Auto Scaling group that the message is about, if any.
	scaling string
	// unconcern says why the message is ignored.
	unconcern string
	// ordinary is set if the message is ignored without a log line.
	ordinary bool
	// what is the kind of the message, for logs: its source and detail-type.
	what string
}

func one(n notice.Notice) decoded { return decoded{notices: []notice.Notice{n}} }

// decode reads the body of a message. It tolerates the known variations of AWS: version or
// resources missing, resources a single string, unknown fields, spaces around an id, detail_type
// for detail-type, a body wrapped by SNS. Its errors are *unreadableError.
func decode(body string) (decoded, error) {
	if len(body) > maxBody {
		return decoded{}, unreadable("body", "%d bytes: expected at most %d", len(body), maxBody)
	}
	e, err := open([]byte(body))
	if err != nil {
		return decoded{}, err
	}
	what := quote(e.Source) + " " + quote(e.DetailType)
	if e.Source == notice.ProbeSource {
		d, err := readProbe(e)
		d.what = what
		return d, err
	}
	r := find(e.Source, e.DetailType)
	switch {
	case r == nil:
		return decoded{unconcern: "this release does not know this kind", what: what}, nil
	case r.read == nil:
		return decoded{unconcern: r.unconcern, what: what}, nil
	}
	d, err := r.read(e)
	d.what = what
	return d, err
}

// notice reads the common fields of a notice, from messages that name the instance as EC2's do.
func (e *envelope) notice(kind string) (notice.Notice, error) {
	id, err := e.instance()
	if err != nil {
		return notice.Notice{}, err
	}
	return e.about(id, kind)
}

// about returns the notice of an instance.
func (e *envelope) about(instance, kind string) (notice.Notice, error) {
	issued, err := moment("time", e.Time)
	if err != nil {
		return notice.Notice{}, err
	}
	n := notice.Notice{
		Notice: v1beta1.Notice{
			ID: strings.TrimSpace(e.ID), Kind: kind, Source: Name, Time: metav1.NewTime(issued),
		},
		InstanceID: instance,
		Account:    strings.TrimSpace(e.Account),
		Region:     strings.TrimSpace(e.Region),
	}
	n.DrillID, n.Drill = e.drill()
	if n.ID == "" || len(n.ID) > maxID {
		n.ID = derivedID(kind, instance, issued)
	}
	return n, nil
}

// moment parses a time in RFC 3339, as EventBridge writes it, or in AWS Health's format. Health's days
// may have one digit, and its weekdays may be wrong (AWS Health User Guide, "EventBridge event
// schema"). Go treats unknown zones as UTC, so only GMT is accepted.
func moment(field, text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil && (strings.HasSuffix(text, " GMT") || strings.HasSuffix(text, " UTC")) {
		at, err = time.Parse("Mon, 2 Jan 2006 15:04:05 MST", text)
	}
	if err != nil || at.Year() < oldest || at.Year() > newest {
		return time.Time{}, unreadable(field, "%s is no time: expected one such as 2026-05-11T08:14:02Z", quote(text))
	}
	return at.UTC(), nil
}

// instance is the instance's id, from the detail, or else from the resource after the last
// slash. The rest of the ARN is not used: spot warnings have the availability zone instead of the
// region, and no account (EC2 User Guide, "Spot Instance interruption notices").
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
			if last, ok := instanceIn(arn); ok {
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

// envelope has the common fields of all messages (EventBridge User Guide, "Events in Amazon
// EventBridge"). Field names match case-insensitively, as in encoding/json.
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
	wrapper
}

// open finds the envelope in a body.
func open(body []byte) (*envelope, error) {
	e, err := parse(body)
	if err == nil {
		e, err = unwrap(e, body)
	}
	if err != nil {
		return nil, err
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

// into reads the detail.
func (e *envelope) into(detail any) error { return into("detail", e.Detail, detail) }

// into reads a JSON object from the field parent, or from the whole body if parent is empty. All
// requested members are strings.
func into(parent string, data []byte, object any) error {
	if len(data) == 0 {
		return unreadable(cmp.Or(parent, "body"), "missing: expected a JSON object")
	}
	if err := json.Unmarshal(data, object); err != nil {
		return unreadableJSON(parent, err)
	}
	return nil
}
