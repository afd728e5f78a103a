package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// What a server does at SIGTERM.
const (
	exitAtOnce = "exit"     // cuts what is open
	graceful   = "graceful" // no longer listens, finishes what it has begun
	ignore     = "ignore"   // goes on serving until it is killed
)

type serverOptions struct {
	Listen       string
	AnswerTime   time.Duration
	AtSIGTERM    string
	ReadyAfter   time.Duration
	Pod, Journal string
}

func serverFlags(args []string) (serverOptions, error) {
	o := serverOptions{}
	fs := flag.NewFlagSet("server", flag.ContinueOnError)
	fs.StringVar(&o.Listen, "listen", ":8080", "address to serve on")
	fs.DurationVar(&o.AnswerTime, "answer-time", 20*time.Millisecond, "how long a request takes")
	fs.StringVar(&o.AtSIGTERM, "at-sigterm", exitAtOnce, "what happens at SIGTERM: exit, graceful or ignore")
	fs.DurationVar(&o.ReadyAfter, "ready-after", 0, "time from the start until it is ready; it answers 503 before")
	journalFlags(fs, &o.Pod, &o.Journal)
	if err := parse(fs, args); err != nil {
		return o, err
	}
	switch o.AtSIGTERM {
	case exitAtOnce, graceful, ignore:
		return o, nil
	default:
		return o, fmt.Errorf("--at-sigterm is %q: write exit, graceful or ignore", o.AtSIGTERM)
	}
}

// server is one HTTP server and what it knows of its requests.
type server struct {
	serverOptions
	journal *journal
	ready   atomic.Bool
	// leaving: every answer says that it is the last on its connection. A client
	// hears that before it asks again. An idle connection that is closed instead,
	// which is what a shutdown does, may just be about to be asked.
	leaving  atomic.Bool
	requests atomic.Int64
	last     atomic.Int64 // when the last one was answered, in ns since 1970
}

// serve serves until ctx ends, which is SIGTERM, and beyond as the options say.
func serve(ctx context.Context, o serverOptions, out io.Writer) error {
	j, err := openJournal(o.Pod, o.Journal, out)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s := &server{serverOptions: o, journal: j}
	j.note(started)
	h := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- h.Serve(listener) }()
	warm := time.NewTimer(o.ReadyAfter)
	defer warm.Stop()
	for {
		select {
		case <-warm.C:
			s.ready.Store(true)
			j.note(ready)
		case err := <-done:
			return fmt.Errorf("serving: %w", err)
		case <-ctx.Done():
			j.note(sigterm)
			s.noteLast()
			return s.stop(h, done)
		}
	}
}

func (s *server) stop(h *http.Server, done <-chan error) error {
	switch s.AtSIGTERM {
	case ignore:
		return <-done // never, but for a failure
	case graceful:
		// What bounds it is the pod's grace period.
		if err := h.Shutdown(context.Background()); err != nil {
			return fmt.Errorf("shutting down: %w", err)
		}
	}
	s.noteLast()
	s.journal.note(exited)
	return nil
}

func (s *server) noteLast() {
	if n := s.requests.Load(); n > 0 {
		s.journal.write(entry{What: lastRequest, Time: time.Unix(0, s.last.Load()), Requests: n})
	}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /leave", func(http.ResponseWriter, *http.Request) { s.leaving.Store(true) })
	mux.HandleFunc("GET /download", s.counted(s.download))
	mux.HandleFunc("GET /", s.counted(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(s.AnswerTime):
			fmt.Fprintln(w, s.Pod)
		case <-r.Context().Done():
		}
	}))
	return mux
}

// counted notes when a request was answered. Before it is ready there is none.
func (s *server) counted(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		if s.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		f(w, r)
		s.requests.Add(1)
		s.last.Store(time.Now().UnixNano())
	}
}

// A download comes in blocks at a steady pace, and says at first how long it is.
const (
	blockSize  = 1024
	blockEvery = 100 * time.Millisecond
)

// download answers /download?seconds=60: a body that takes that long.
func (s *server) download(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
	if err != nil || seconds < 1 || seconds > 3600 {
		http.Error(w, "seconds: write a number from 1 to 3600", http.StatusBadRequest)
		return
	}
	blocks := seconds * int(time.Second/blockEvery)
	w.Header().Set("Content-Length", strconv.Itoa(blocks*blockSize))
	body := http.NewResponseController(w)
	block := make([]byte, blockSize)
	tick := time.NewTicker(blockEvery)
	defer tick.Stop()
	for range blocks {
		if _, err := w.Write(block); err != nil {
			return
		}
		if err := body.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
