package terminal

import (
	"fmt"
	"sync"
	"time"
)

const (
	// redraw is how often a progress line moves.
	redraw = 120 * time.Millisecond
	// remind is how often a wait that goes on is told of where lines stay.
	remind = 15 * time.Second
	// unclocked is how short a wait is not worth counting.
	unclocked = 2 * time.Second
)

// Progress tells what is being waited for: one moving line with a clock on a
// terminal; elsewhere, where every line stays, a plain line now and then, and
// none at all when it is soon over. It is safe for concurrent use.
type Progress struct {
	stream Stream
	stop   chan struct{}
	ended  sync.WaitGroup

	mu    sync.Mutex
	text  string
	since time.Time
	frame int
	idle  bool
	done  bool
}

// NewProgress begins to tell. Stop must be called.
func NewProgress(s Stream) *Progress {
	p := &Progress{stream: s, stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Step says what is being waited for from now on.
func (p *Progress) Step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || text == p.text {
		return
	}
	p.text, p.since, p.idle = text, time.Now(), false
	p.draw()
}

// Idle says that nothing is being waited for: the line goes away until the next
// step.
func (p *Progress) Idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.idle = true
}

// Print writes lines that stay, to whichever stream, without tearing the
// moving line.
func (p *Progress) Print(s Stream, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	s.Printf("%s", text)
	p.draw()
}

// Stop takes the moving line away. It may be called again.
func (p *Progress) Stop() {
	p.mu.Lock()
	if !p.done {
		p.clear()
		p.done = true
		close(p.stop)
	}
	p.mu.Unlock()
	p.ended.Wait()
}

func (p *Progress) run() {
	every, tell := redraw, p.draw
	if !p.stream.TTY {
		every, tell = remind, p.remind
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.frame++
			tell()
			p.mu.Unlock()
		}
	}
}

func (p *Progress) waits() bool { return !p.done && !p.idle && p.text != "" }

func (p *Progress) clear() {
	if p.stream.TTY && p.waits() {
		p.stream.Printf("\r\x1b[K")
	}
}

// clock is how long the wait has been, once that is worth a word.
func (p *Progress) clock() string {
	if waited := time.Since(p.since); waited >= unclocked {
		return " " + Duration(waited)
	}
	return ""
}

// remind writes a line that stays.
func (p *Progress) remind() {
	if p.waits() {
		p.stream.Printf("%s%s\n", p.text, p.clock())
	}
}

// draw writes the line that moves.
func (p *Progress) draw() {
	if !p.stream.TTY || !p.waits() {
		return
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	text := []rune(p.text)
	clock := p.clock()
	// A line that wraps cannot be taken back, so it is cut to fit.
	if room := p.stream.Width - len(clock) - 3; p.stream.Width > 0 && len(text) > room {
		text = text[:max(room, 0)]
	}
	p.stream.Printf("\r\x1b[K%c %s%s", frames[p.frame%len(frames)], string(text), p.stream.Paint(Dim, clock))
}
