package sqs

import (
	"crypto/md5" //nolint:gosec // SQS's checksums are MD5
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// maxMessage is the largest message or batch in bytes, attributes included
// (SQS Developer Guide, "Amazon SQS message quotas").
const maxMessage = 1 << 20

// maxMessageAttributes is how many attributes a message may have.
const maxMessageAttributes = 10

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary)(\..+)?$`)
)

// message is one message in a queue.
type message struct {
	id         string
	body       string
	attributes map[string]MessageAttribute
	trace      string // AWSTraceHeader
	group      string // MessageGroupId, which standard queues carry along
	sender     string
	source     string // the ARN of the queue that moved it to this dead-letter queue
	sent       time.Time

	receives      int       // all of them, as shown
	receivesHere  int       // since it is in this queue, as the redrive policy counts
	firstReceived time.Time // ever
	received      time.Time // last
	receipt       string    // of the last receive
	visibleAt     time.Time
	inFlight      bool
	returned      bool // it was deleted, and is received once more
	sequence      int64

	heap *messageHeap
	slot int
}

// MessageAttribute is a typed attribute that a sender put on a message.
type MessageAttribute struct {
	DataType    string    `json:"DataType"`
	StringValue string    `json:"StringValue,omitempty" xml:",omitempty"`
	BinaryValue wire.Blob `json:"BinaryValue,omitempty" xml:",omitempty"`
}

func (a MessageAttribute) binary() bool { return strings.HasPrefix(a.DataType, "Binary") }

// Outgoing is a message to be sent.
type Outgoing struct {
	Body       string
	Attributes map[string]MessageAttribute
	// TraceHeader is the system attribute AWSTraceHeader.
	TraceHeader string
	// GroupID is MessageGroupId: without effect on order in standard queues.
	GroupID string
	// Delay overrides the queue's DelaySeconds.
	Delay *int
}

// size is what counts against quotas, in bytes.
func (o *Outgoing) size() int {
	n := len(o.Body)
	for name, a := range o.Attributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	return n
}

// check rejects what no queue accepts; limit is the queue's MaximumMessageSize.
func (o *Outgoing) check(limit int) error {
	if o.Body == "" {
		return missingParameter("MessageBody")
	}
	if o.size() > limit {
		return badParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", limit)
	}
	if !validText(o.Body) {
		return wire.Errorf("InvalidMessageContents", "Invalid characters found in message body. "+
			"Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if o.Delay != nil && (*o.Delay < 0 || *o.Delay > 900) {
		return badParameter("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", *o.Delay)
	}
	if len(o.Attributes) > maxMessageAttributes {
		return badParameter("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(o.Attributes), maxMessageAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Attributes)) {
		if err := checkAttribute(name, o.Attributes[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkAttribute(name string, a MessageAttribute) error {
	switch {
	case !attributeName.MatchString(name):
		return badParameter("The message attribute name '%s' is invalid.", name)
	case !attributeType.MatchString(a.DataType):
		return badParameter("The type of message (user) attribute '%s' is invalid. "+
			"You must use only the following supported type prefixes: Binary, Number, String.", name)
	case a.binary() && len(a.BinaryValue) == 0, !a.binary() && a.StringValue == "":
		return badParameter("The message attribute '%s' must contain a non-empty value for type '%s'.", name, a.DataType)
	case !validText(a.StringValue):
		return wire.Errorf("InvalidMessageContents", "Invalid characters found in message attribute '%s'.", name)
	}
	return nil
}

// validText reports whether SQS accepts the text: Unicode without most control characters.
func validText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xD7FF:
		case r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
		default:
			return false
		}
	}
	return true
}

// digest is the MD5 of a body, in hex.
func digest(body string) string {
	sum := md5.Sum([]byte(body)) //nolint:gosec // SQS's checksums are MD5
	return hex.EncodeToString(sum[:])
}

// attributesDigest is the MD5 of attributes as the SQS Developer Guide defines
// it ("Calculating the MD5 message digest for message attributes"); empty for
// none.
func attributesDigest(attributes map[string]MessageAttribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	part := func(text string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		part(name)
		part(a.DataType)
		if a.binary() {
			b = append(b, 2)
			part(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			part(a.StringValue)
		}
	}
	return digest(string(b))
}
