package terminal

import (
	"fmt"
	"sync"
	"time"
)

// redraw is how often a progress line moves.
const redraw = 120 * time.Millisecond

// Progress tells what is being waited for: one moving line with a clock on a
// terminal, a plain line whenever it changes elsewhere. It is safe for
// concurrent use.
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
	if s.TTY {
		p.ended.Go(p.move)
	}
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
	if p.stream.TTY {
		p.draw()
		return
	}
	p.stream.Printf("%s\n", text)
}

// Idle says that nothing is being waited for: the moving line goes away until
// the next step.
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

func (p *Progress) move() {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.frame++
			p.draw()
			p.mu.Unlock()
		}
	}
}

func (p *Progress) isShown() bool {
	return p.stream.TTY && !p.done && !p.idle && p.text != ""
}

func (p *Progress) clear() {
	if p.isShown() {
		p.stream.Printf("\r\x1b[K")
	}
}

func (p *Progress) draw() {
	if !p.isShown() {
		return
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	text := []rune(p.text)
	clock := ""
	if waited := time.Since(p.since); waited >= 2*time.Second {
		clock = " " + Duration(waited)
	}
	// A line that wraps cannot be taken back, so it is cut to fit.
	if room := p.stream.Width - len(clock) - 3; p.stream.Width > 0 && len(text) > room {
		text = text[:max(room, 0)]
	}
	p.stream.Printf("\r\x1b[K%c %s%s", frames[p.frame%len(frames)], string(text), p.stream.Paint(Dim, clock))
}
