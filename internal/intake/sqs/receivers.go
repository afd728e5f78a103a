package sqs

import "sync"

// receiverPool counts the receivers: at least least, and up to most while batches are
// busy. SQS returns at most ten messages a call, so a burst needs concurrent receivers.
type receiverPool struct {
	least, most int

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
