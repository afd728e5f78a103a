package sqs

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// MoveTask is a finished redrive of a dead-letter queue. AWS moves messages in
// the background; the emulator moves them at once, so every task is completed.
type MoveTask struct {
	Handle      string
	Source      string // ARN
	Destination string // ARN; empty for the queues that the messages came from
	Moved       int
	Started     time.Time
}

func noSuchResource(message string) *wire.Error {
	return &wire.Error{Status: http.StatusNotFound, Code: "ResourceNotFoundException", Message: message}
}

// Move redrives all messages of a dead-letter queue, to a queue or to their source queues. Moved
// messages are new ones: new id, new time of sending (SQS Developer Guide, "Dead-letter queue
// redrive").
func (s *State) Move(source, destination string) (MoveTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.byARN(source)
	if from == nil {
		return MoveTask{}, noSuchResource("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	if !s.isDeadLetterQueue(from) {
		return MoveTask{}, badParameter("Source queue must be configured as a Dead Letter Queue.")
	}
	if destination != "" && s.byARN(destination) == nil {
		return MoveTask{}, noSuchResource("The resource that you specified for the DestinationArn parameter doesn't exist.")
	}
	now := time.Now()
	from.advance(now)
	task := MoveTask{
		Handle:      base64.StdEncoding.EncodeToString([]byte(rand.Text())),
		Source:      source,
		Destination: destination,
		Started:     now,
	}
	for _, m := range slices.SortedFunc(slices.Values(from.ready.items), from.ready.before) {
		to := s.byARN(destination)
		if destination == "" {
			to = s.queues[m.sourceName()]
		}
		if to == nil {
			continue // its source queue is deleted: it stays
		}
		from.remove(m)
		moved := *m
		moved.id, moved.sent, moved.visibleAt = string(uuid.NewUUID()), now, now
		moved.receives, moved.receivesHere, moved.source, moved.receipt = 0, 0, "", ""
		moved.firstReceived = time.Time{}
		to.insert(&moved, now)
		task.Moved++
	}
	s.moves = slices.Insert(s.moves, 0, &task)
	return task, nil
}

func (s *State) isDeadLetterQueue(q *queue) bool {
	for _, other := range s.queues {
		if other.settings.redrive.to(q.arn) {
			return true
		}
	}
	return false
}

// Moves lists the redrives of a queue, the newest first, at most limit.
func (s *State) Moves(source string, limit int) ([]MoveTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byARN(source) == nil {
		return nil, noSuchResource("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	var tasks []MoveTask
	for _, task := range s.moves {
		if task.Source == source && len(tasks) < limit {
			tasks = append(tasks, *task)
		}
	}
	return tasks, nil
}

// CancelMove returns an error: every known task has completed.
func (s *State) CancelMove(handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range s.moves {
		if task.Handle == handle {
			return badParameter("Only active tasks can be cancelled.")
		}
	}
	return noSuchResource("Task does not exist.")
}
