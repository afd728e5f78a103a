package sqs

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// lobbyRound is how often those in the lobby are looked at, and lobbySize how
	// many there may be: a round costs some microseconds for each, and no call.
	lobbyRound = time.Second
	lobbySize  = 2000
)

// lobby remembers messages that were put back because an instance that they name is
// no node yet, for as long as SQS keeps them hidden: so they can be hidden for long,
// which costs few receives, and are heard as soon as the node registers. It is
// a short cut only: those that it has no room for, or that are forgotten because
// the process ends, come again.
type lobby struct {
	mu     sync.Mutex
	guests map[string]*guest // by receipt handle
}

type guest struct {
	letter *letter
	until  time.Time
}

func (l *lobby) add(m *letter, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.guests) >= lobbySize {
		return
	}
	if l.guests == nil {
		l.guests = map[string]*guest{}
	}
	// No more of the batch than is needed, and not the text of it.
	alone := &letter{Message: &types.Message{ReceiptHandle: m.ReceiptHandle}, decoded: m.decoded}
	l.guests[m.handle()] = &guest{letter: alone, until: until}
}

// present drops who has gone from hiding, and returns the others.
func (l *lobby) present(now time.Time) []*letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	var present []*letter
	for handle, g := range l.guests {
		if !now.Before(g.until) {
			delete(l.guests, handle)
			continue
		}
		present = append(present, g.letter)
	}
	return present
}

func (l *lobby) remove(m *letter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.guests, m.handle())
}

// attend records the notices of those whose node is there by now, until ctx is
// done.
func (s *Source) attend(ctx context.Context) {
	for sleep.For(ctx, lobbyRound) {
		for _, m := range s.lobby.present(s.o.Clock()) {
			if ctx.Err() != nil {
				return
			}
			if f, done := s.again(ctx, m); done {
				s.lobby.remove(m)
				s.o.Metrics.Received(Name, f.word)
				s.deletes.in <- m.handle()
			}
		}
	}
}

// mayWait reports whether the lobby knows all that a message says: notices of
// instances that are named. What is asked for, or written elsewhere, is done when the
// message comes again.
func (d *decoded) mayWait() bool {
	return len(d.notices) > 0 && len(d.groups)+len(d.reports) == 0 && d.probe == nil
}

// again tries once to record what a message in the lobby says. It may go when there
// is something to record, and all of it is durable.
func (s *Source) again(ctx context.Context, m *letter) (fate, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()
	if !m.mayWait() {
		return fate{}, false
	}
	var last intake.Outcome
	for _, n := range m.notices {
		outcome, err := s.recorder.Record(ctx, n)
		if err != nil || !outcome.Final() {
			return fate{}, false
		}
		last = outcome
	}
	return fate{word: string(last), ack: true}, true
}
