package terminal

import (
	"fmt"
	"sync"
	"time"
)

const (
	// redraw is the time between redraws of the progress line.
	redraw = 120 * time.Millisecond
	// remind is the time between repeated lines where output is not a terminal.
	remind = 15 * time.Second
	// clockAfter is the shortest wait that shows its duration.
	clockAfter = 2 * time.Second
)

// Progress shows what the program waits for. On a terminal it is one line that
// is redrawn, with the time waited. Elsewhere it is an occasional plain line,
// and none for a short wait. It is safe for concurrent use.
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

// NewProgress starts the progress display. The caller must call Stop.
func NewProgress(s Stream) *Progress {
	p := &Progress{stream: s, stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Step sets the text of the current wait.
func (p *Progress) Step(format string, args ...any) {
	text := Line(fmt.Sprintf(format, args...))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || text == p.text {
		return
	}
	p.text, p.since, p.idle = text, time.Now(), false
	p.draw()
}

// Idle removes the line until the next Step.
func (p *Progress) Idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.idle = true
}

// Print writes permanent lines to either stream and redraws the progress line
// below them.
func (p *Progress) Print(s Stream, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	s.Printf("%s", text)
	p.draw()
}

// Stop removes the progress line. It can be called more than once.
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
		p.stream.control("\r\x1b[K")
	}
}

// clock formats the time waited, or returns nothing for a short wait.
func (p *Progress) clock() string {
	if waited := time.Since(p.since); waited >= clockAfter {
		return " " + Duration(waited)
	}
	return ""
}

// remind writes a permanent line.
func (p *Progress) remind() {
	if p.waits() {
		p.stream.Printf("%s%s\n", p.text, p.clock())
	}
}

// draw redraws the progress line.
func (p *Progress) draw() {
	if !p.stream.TTY || !p.waits() {
		return
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	text := []rune(p.text)
	clock := p.clock()
	// A wrapped line cannot be erased, so it is cut to fit.
	if room := p.stream.Width - len(clock) - 3; p.stream.Width > 0 && len(text) > room {
		text = text[:max(room, 0)]
	}
	p.stream.control("\r\x1b[K" + string(frames[p.frame%len(frames)]) + " " + string(text) + visible(p.stream.Paint(Dim, clock)))
}
