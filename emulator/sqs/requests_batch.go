package sqs

import (
	"context"
	"errors"
	"regexp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// maxEntries is how many entries a batch may have.
const maxEntries = 10

var entryIDFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// entryID names an entry within its batch.
type entryID struct {
	ID string `json:"Id" xml:"Id" query:"Id"`
}

func (e entryID) id() string { return e.ID }

// failure is an entry that did not succeed; the rest of its batch may have.
type failure struct {
	entryID

	SenderFault bool
	Code        string
	Message     string `json:",omitempty" xml:",omitempty"`
}

// checkEntries rejects a whole batch.
func checkEntries[E interface{ id() string }](kind string, entries []E) error {
	switch {
	case len(entries) == 0:
		return prefixed("EmptyBatchRequest", "There should be at least one %s in the request.", kind)
	case len(entries) > maxEntries:
		return prefixed("TooManyEntriesInBatchRequest",
			"Maximum number of entries per request are %d. You have sent %d.", maxEntries, len(entries))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		switch {
		case !entryIDFormat.MatchString(e.id()):
			return prefixed("InvalidBatchEntryId",
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		case seen[e.id()]:
			return prefixed("BatchEntryIdsNotDistinct", "Id %s repeated.", e.id())
		}
		seen[e.id()] = true
	}
	return nil
}

// each performs a batch entry by entry, and sorts the results.
func each[E interface{ id() string }, R any](entries []E, f func(*E) (R, error)) (done []R, failed []failure) {
	for i := range entries {
		result, err := f(&entries[i])
		if err == nil {
			done = append(done, result)
			continue
		}
		failed = append(failed, failureOf(entries[i].id(), err))
	}
	return done, failed
}

func failureOf(id string, err error) failure {
	f := failure{entryID: entryID{ID: id}, Code: "InternalError", Message: err.Error()}
	var e *wire.Error
	if errors.As(err, &e) {
		f.SenderFault, f.Code, f.Message = true, e.Code, e.Message
		if e.QueryCode != "" {
			f.Code = e.QueryCode
		}
	}
	return f
}

type sendEntry struct {
	entryID
	outgoing
}

type sendBatchInput struct {
	queueRef

	Entries []sendEntry `query:"SendMessageBatchRequestEntry"`
}

type sentEntry struct {
	entryID
	sent
}

type sendBatchOutput struct {
	Successful []sentEntry `json:",omitempty" xml:"SendMessageBatchResultEntry"`
	Failed     []failure   `json:",omitempty" xml:"BatchResultErrorEntry"`
}

func (a *api) sendMessageBatch(_ context.Context, r *wire.Request, in *sendBatchInput) (*sendBatchOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if err := checkEntries("SendMessageBatchRequestEntry", in.Entries); err != nil {
		return nil, err
	}
	size := 0
	for i := range in.Entries {
		size += (&Outgoing{Body: in.Entries[i].MessageBody, Attributes: in.Entries[i].MessageAttributes}).size()
	}
	if size > maxMessage {
		return nil, prefixed("BatchRequestTooLong",
			"Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, size)
	}
	out := &sendBatchOutput{}
	out.Successful, out.Failed = each(in.Entries, func(e *sendEntry) (sentEntry, error) {
		s, err := a.send(r, name, &e.outgoing)
		if err != nil {
			return sentEntry{}, err
		}
		return sentEntry{entryID: e.entryID, sent: *s}, nil
	})
	return out, nil
}

type deleteEntry struct {
	entryID
	receipt
}

type deleteBatchInput struct {
	queueRef

	Entries []deleteEntry `query:"DeleteMessageBatchRequestEntry"`
}

type deleteBatchOutput struct {
	Successful []entryID `json:",omitempty" xml:"DeleteMessageBatchResultEntry"`
	Failed     []failure `json:",omitempty" xml:"BatchResultErrorEntry"`
}

func (a *api) deleteMessageBatch(_ context.Context, r *wire.Request, in *deleteBatchInput) (*deleteBatchOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if err := checkEntries("DeleteMessageBatchRequestEntry", in.Entries); err != nil {
		return nil, err
	}
	out := &deleteBatchOutput{}
	out.Successful, out.Failed = each(in.Entries, func(e *deleteEntry) (entryID, error) {
		return e.entryID, a.state.DeleteMessage(name, e.ReceiptHandle)
	})
	return out, nil
}

type visibilityEntry struct {
	entryID
	receipt

	VisibilityTimeout *int
}

type visibilityBatchInput struct {
	queueRef

	Entries []visibilityEntry `query:"ChangeMessageVisibilityBatchRequestEntry"`
}

type visibilityBatchOutput struct {
	Successful []entryID `json:",omitempty" xml:"ChangeMessageVisibilityBatchResultEntry"`
	Failed     []failure `json:",omitempty" xml:"BatchResultErrorEntry"`
}

func (a *api) changeMessageVisibilityBatch(_ context.Context, r *wire.Request, in *visibilityBatchInput) (*visibilityBatchOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	if err := checkEntries("ChangeMessageVisibilityBatchRequestEntry", in.Entries); err != nil {
		return nil, err
	}
	out := &visibilityBatchOutput{}
	out.Successful, out.Failed = each(in.Entries, func(e *visibilityEntry) (entryID, error) {
		return e.entryID, a.state.ChangeVisibility(name, e.ReceiptHandle, e.VisibilityTimeout)
	})
	return out, nil
}
