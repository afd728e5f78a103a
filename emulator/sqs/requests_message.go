package sqs

import (
	"context"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// outgoing is a message as SendMessage and SendMessageBatch carry it.
type outgoing struct {
	MessageBody             string
	DelaySeconds            *int
	MessageGroupID          string                      `json:"MessageGroupId"`
	MessageAttributes       map[string]MessageAttribute `query:"MessageAttribute,Name,Value"`
	MessageSystemAttributes map[string]MessageAttribute `query:"MessageSystemAttribute,Name,Value"`
}

func (o *outgoing) read() (Outgoing, error) {
	for name := range o.MessageSystemAttributes {
		if name != "AWSTraceHeader" {
			return Outgoing{}, badParameter("Message system attribute name '%s' is invalid.", name)
		}
	}
	return Outgoing{
		Body:        o.MessageBody,
		Attributes:  o.MessageAttributes,
		TraceHeader: o.MessageSystemAttributes["AWSTraceHeader"].StringValue,
		GroupID:     o.MessageGroupID,
		Delay:       o.DelaySeconds,
	}, nil
}

type sendMessageInput struct {
	queueRef
	outgoing
}

// sent is the answer of SendMessage and SendMessageBatch about a message.
type sent struct {
	MessageID        string `json:"MessageId" xml:"MessageId"`
	BodyDigest       string `json:"MD5OfMessageBody" xml:"MD5OfMessageBody"`
	AttributesDigest string `json:"MD5OfMessageAttributes,omitempty" xml:"MD5OfMessageAttributes,omitempty"`
	TraceDigest      string `json:"MD5OfMessageSystemAttributes,omitempty" xml:"MD5OfMessageSystemAttributes,omitempty"`
}

func (a *api) send(r *wire.Request, queue string, o *outgoing) (*sent, error) {
	out, err := o.read()
	if err != nil {
		return nil, err
	}
	s, err := a.state.Send(queue, out, a.identify(r.AccessKey).UserID)
	if err != nil {
		return nil, err
	}
	return &sent{
		MessageID:        s.MessageID,
		BodyDigest:       s.BodyDigest,
		AttributesDigest: s.AttributesDigest,
		TraceDigest:      s.TraceDigest,
	}, nil
}

func (a *api) sendMessage(_ context.Context, r *wire.Request, in *sendMessageInput) (*sent, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	return a.send(r, name, &in.outgoing)
}

type receiveMessageInput struct {
	queueRef

	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string `query:"AttributeName"`
	MessageSystemAttributeNames []string `query:"MessageSystemAttributeName"`
	MessageAttributeNames       []string `query:"MessageAttributeName"`
}

func (in *receiveMessageInput) options() (ReceiveOptions, error) {
	o := ReceiveOptions{Max: orDefault(in.MaxNumberOfMessages, 1), Visibility: in.VisibilityTimeout, Wait: in.WaitTimeSeconds}
	for _, limit := range []struct {
		name            string
		value, min, max int
	}{
		{"MaxNumberOfMessages", o.Max, 1, 10},
		{"VisibilityTimeout", orDefault(o.Visibility, 0), 0, maxVisibility},
		{"WaitTimeSeconds", orDefault(o.Wait, 0), 0, 20},
	} {
		if limit.value < limit.min || limit.value > limit.max {
			return o, badParameter("Value %d for parameter %s is invalid. Reason: Must be >= %d and <= %d, if provided.",
				limit.value, limit.name, limit.min, limit.max)
		}
	}
	return o, nil
}

// incoming is a message as ReceiveMessage carries it.
type incoming struct {
	MessageID         string `json:"MessageId" xml:"MessageId"`
	ReceiptHandle     string
	MD5OfBody         string
	Body              string
	Attributes        wire.Attributes `json:",omitempty" xml:"Attribute"`
	AttributesDigest  string          `json:"MD5OfMessageAttributes,omitempty" xml:"MD5OfMessageAttributes,omitempty"`
	MessageAttributes typedAttributes `json:",omitempty" xml:"MessageAttribute"`
}

// typedAttributes are message attributes, flat in XML.
type typedAttributes map[string]MessageAttribute

// MarshalXML implements xml.Marshaler.
func (t typedAttributes) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	return wire.EncodeEntries(e, start, "Name", t)
}

type receiveMessageOutput struct {
	Messages []incoming `json:",omitempty" xml:"Message"`
}

func (a *api) receiveMessage(ctx context.Context, r *wire.Request, in *receiveMessageInput) (*receiveMessageOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	received, err := a.state.Receive(ctx, name, options)
	if err != nil {
		return nil, err
	}
	out := &receiveMessageOutput{}
	for _, m := range received {
		out.Messages = append(out.Messages, in.incoming(m))
	}
	return out, nil
}

// incoming selects the requested attributes.
func (in *receiveMessageInput) incoming(m Received) incoming {
	system, typed := wire.Attributes{}, typedAttributes{}
	wanted := slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)
	for name, value := range m.System {
		if slices.Contains(wanted, "All") || slices.Contains(wanted, name) {
			system[name] = value
		}
	}
	for name, value := range m.Attributes {
		if slices.ContainsFunc(in.MessageAttributeNames, func(w string) bool { return asksFor(w, name) }) {
			typed[name] = value
		}
	}
	return incoming{
		MessageID:         m.ID,
		ReceiptHandle:     m.Handle,
		MD5OfBody:         digest(m.Body),
		Body:              m.Body,
		Attributes:        system,
		AttributesDigest:  attributesDigest(typed),
		MessageAttributes: typed,
	}
}

// asksFor reports whether a requested name covers an attribute: "All", ".*",
// "prefix.*", or the name itself.
func asksFor(wanted, name string) bool {
	if start, ok := strings.CutSuffix(wanted, ".*"); ok {
		return strings.HasPrefix(name, start)
	}
	return wanted == "All" || wanted == name
}

// receipt names a message in flight.
type receipt struct {
	ReceiptHandle string
}

type deleteMessageInput struct {
	queueRef
	receipt
}

func (a *api) deleteMessage(_ context.Context, r *wire.Request, in *deleteMessageInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	return nil, a.state.DeleteMessage(name, in.ReceiptHandle)
}

type changeVisibilityInput struct {
	queueRef
	receipt

	VisibilityTimeout *int
}

func (a *api) changeMessageVisibility(_ context.Context, r *wire.Request, in *changeVisibilityInput) (*wire.None, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	return nil, a.state.ChangeVisibility(name, in.ReceiptHandle, in.VisibilityTimeout)
}
