package sqs

import (
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// receiveBudget is how many bytes of bodies one receive should return. Messages can be 1 MiB
// each, and there are up to 16 receivers; AWS's own have a few KiB.
const receiveBudget = 512 << 10

// receiverPool counts the receivers: at least least, and up to most while batches are
// busy. SQS returns at most ten messages a call, so a burst needs concurrent receivers.
type receiverPool struct {
	least, most int
	largest     atomic.Int64 // size of the largest message of the latest batches

	mu      sync.Mutex
	running int
	group   sync.WaitGroup
}

// grow starts one more receiver, unless the pool is at its maximum.
func (p *receiverPool) grow(receive func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running < p.most {
		p.running++
		p.group.Go(receive)
	}
}

// shrink reports whether the calling receiver must stop; it then no longer counts.
func (p *receiverPool) shrink() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running <= p.least {
		return false
	}
	p.running--
	return true
}

// hasExtra reports whether more than the minimum run.
func (p *receiverPool) hasExtra() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running > p.least
}

// batchSize is how many messages to ask for: fewer if the latest were large.
func (p *receiverPool) batchSize() int32 {
	return int32(max(1, min(batchSize, receiveBudget/max(1, p.largest.Load()))))
}

// observeSize remembers the size of the largest message. A batch of smaller ones halves it.
func (p *receiverPool) observeSize(messages []types.Message) {
	var largest int64
	for i := range messages {
		largest = max(largest, int64(len(aws.ToString(messages[i].Body))))
	}
	p.largest.Store(max(largest, p.largest.Load()/2))
}
