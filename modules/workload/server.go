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

// The behaviours at SIGTERM.
const (
	exitAtOnce = "exit"     // closes open connections immediately
	graceful   = "graceful" // stops listening and completes open requests
	ignore     = "ignore"   // serves until it is killed
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
	fs.DurationVar(&o.AnswerTime, "answer-time", 20*time.Millisecond, "duration of a request")
	fs.StringVar(&o.AtSIGTERM, "at-sigterm", exitAtOnce, "behaviour at SIGTERM: exit, graceful or ignore")
	fs.DurationVar(&o.ReadyAfter, "ready-after", 0, "time from the start until it is ready; until then it responds with 503")
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

// server is an HTTP server with statistics about its requests.
type server struct {
	serverOptions
	journal *journal
	ready   atomic.Bool
	// leaving makes every response the last on its connection. The client learns that
	// before its next request. A shutdown instead closes idle connections, which can
	// race with the client's next request.
	leaving  atomic.Bool
	requests atomic.Int64
	last     atomic.Int64 // time of the last response, in ns since 1970
}

// serve serves until ctx ends (SIGTERM), and after that as configured.
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
		return <-done // returns only after a failure
	case graceful:
		// The pod's grace period limits it.
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

// counted records the time of each response. Before the server is ready it counts no
// requests.
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

// A download has blocks at a constant rate and a Content-Length.
const (
	blockSize  = 1024
	blockEvery = 100 * time.Millisecond
)

// download answers /download?seconds=60 with a body that takes this time.
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
