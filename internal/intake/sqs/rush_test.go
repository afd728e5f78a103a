package sqs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// tide hands out batches, each not before its time.
type tide struct {
	*paperAPI
	began   time.Time
	mu      sync.Mutex
	batches []batch
}

type batch struct {
	at     time.Duration
	bodies []string
}

func (s *tide) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, more ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	s.mu.Lock()
	if len(s.batches) == 0 {
		s.mu.Unlock()
		return s.paperAPI.ReceiveMessage(ctx, in, more...)
	}
	next := s.batches[0]
	s.batches = s.batches[1:]
	s.mu.Unlock()
	time.Sleep(time.Until(s.began.Add(next.at)))
	out := &awssqs.ReceiveMessageOutput{}
	for _, body := range next.bodies {
		out.Messages = append(out.Messages, types.Message{Body: &body, ReceiptHandle: aws.String("handle")})
	}
	return out, nil
}

// A rush lasts until nothing has come to one who waits; that all have messages in hand does
// not end it.
func TestARushLastsUntilTheQueueSeemsEmpty(t *testing.T) {
	const dry, writes = 250 * time.Millisecond, 700 * time.Millisecond
	hint := []string{rebalance("hint", instance).String()}
	for name, tc := range map[string]struct {
		receivers int
		ahead     time.Duration // what is done ahead of each takes so long
		batches   []batch
		want      [][2]time.Duration // from and until
	}{
		"another waits for more":     {receivers: 2, batches: []batch{{0, spots(3)}}, want: [][2]time.Duration{{0, dry}}},
		"nobody does":                {receivers: 1, batches: []batch{{0, spots(3)}, {0, spots(3)}}, want: [][2]time.Duration{{0, 2*writes + dry}}},
		"more come while one waits":  {receivers: 2, batches: []batch{{0, spots(1)}, {200 * time.Millisecond, spots(1)}}, want: [][2]time.Duration{{0, writes + dry}}},
		"more come much later":       {receivers: 2, batches: []batch{{0, spots(1)}, {2 * time.Second, spots(1)}}, want: [][2]time.Duration{{0, dry}, {2 * time.Second, 2*time.Second + dry}}},
		"what is in hand is long":    {receivers: 2, ahead: time.Second, batches: []batch{{0, spots(3)}}, want: [][2]time.Duration{{0, time.Second}}},
		"what is not urgent":         {receivers: 2, batches: []batch{{0, hint}}},
		"what is not urgent besides": {receivers: 2, batches: []batch{{0, spots(1)}, {200 * time.Millisecond, hint}}, want: [][2]time.Duration{{0, writes + dry}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				api := &tide{paperAPI: newPaper(), began: time.Now(), batches: tc.batches}
				var rushes [][2]time.Duration
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				stop := w.run(api, recorderFunc(func(context.Context, notice.Notice) (intake.Outcome, error) {
					time.Sleep(writes)
					return intake.Recorded, nil
				}), sqs.Options{Receivers: tc.receivers, Most: tc.receivers, Ahead: func(context.Context, notice.Notice) bool {
					time.Sleep(tc.ahead)
					return false
				}, Rush: func() func() {
					rushes = append(rushes, [2]time.Duration{time.Since(api.began), -1})
					return func() { rushes[len(rushes)-1][1] = time.Since(api.began) }
				}})
				time.Sleep(30 * time.Second)
				stop()
				if fmt.Sprint(rushes) != fmt.Sprint(tc.want) {
					t.Errorf("rushes %v, want %v", rushes, tc.want)
				}
			})
		})
	}
}
