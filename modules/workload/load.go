package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"time"
)

// What a load does.
const (
	newEach   = "new"        // a connection for every request
	keepAlive = "keep-alive" // every worker keeps its connection
	download  = "download"   // as new, and a request may take as long as something comes
)

// writeEvery is how old a summary is at most should the load itself be cut off.
const writeEvery = time.Second

type loadOptions struct {
	URL      string
	Mode     string
	Workers  int
	Pause    time.Duration
	Quiet    time.Duration
	Duration time.Duration
	Summary  string
}

func loadFlags(args []string) (loadOptions, error) {
	o := loadOptions{}
	fs := flag.NewFlagSet("load", flag.ContinueOnError)
	fs.StringVar(&o.URL, "url", "", "what to ask for, as http://HOST:PORT/PATH")
	fs.StringVar(&o.Mode, "mode", newEach, "new: a connection for every request; keep-alive: workers keep theirs; download: requests that take long")
	fs.IntVar(&o.Workers, "workers", 8, "how many ask at once")
	fs.DurationVar(&o.Pause, "pause", 0, "what a worker waits between two requests")
	fs.DurationVar(&o.Quiet, "timeout", 3*time.Second, "how long a connection, or the next piece of an answer, may take")
	fs.DurationVar(&o.Duration, "duration", 0, "when to end; 0: at SIGTERM only")
	fs.StringVar(&o.Summary, "summary", "", "file for the summary, besides standard output")
	if err := parse(fs, args); err != nil {
		return o, err
	}
	switch {
	case o.Workers < 1 || o.Workers > 1000:
		return o, fmt.Errorf("--workers is %d: write a number from 1 to 1000", o.Workers)
	case o.Mode != newEach && o.Mode != keepAlive && o.Mode != download:
		return o, fmt.Errorf("--mode is %q: write new, keep-alive or download", o.Mode)
	case o.Quiet <= 0:
		return o, errors.New("--timeout has to be more than 0")
	}
	return o, nil
}

// load asks until ctx ends, which is SIGTERM, or the time is up, and writes down
// what it saw. That there were failures is not an error.
func load(ctx context.Context, o loadOptions, out io.Writer) error {
	target, err := url.Parse(o.URL)
	if err != nil || target.Scheme != "http" || target.Host == "" {
		return fmt.Errorf("--url is %q: write one such as http://10.96.0.7:80/", o.URL)
	}
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	t := newTally()
	if o.Mode == download {
		// Else counting would begin with the end of the first one.
		first := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/"}
		work(ctx, o, newClient(first, false, o.Quiet), t, t.begun)
	}
	var workers sync.WaitGroup
	for range o.Workers {
		c := newClient(target, o.Mode == keepAlive, o.Quiet)
		c.connected = t.connected
		workers.Go(func() { work(ctx, o, c, t, never) })
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	return report(done, o.Summary, t, out)
}

func never() bool { return false }

// work is one worker. It works until ctx ends, or it is enough.
func work(ctx context.Context, o loadOptions, c *client, t *tally, enough func() bool) {
	defer c.close()
	// A short request is carried through; a download would take too long.
	asking := context.WithoutCancel(ctx)
	if o.Mode == download {
		asking = ctx
	}
	for ctx.Err() == nil && !enough() {
		r := request{Began: time.Now(), Reused: c.conn != nil}
		r.Err = c.ask(asking)
		r.Ended = time.Now()
		if asking.Err() != nil {
			return // what came of it says nothing
		}
		t.count(r)
		wait := o.Pause
		if r.Err != nil {
			wait = max(wait, 5*time.Millisecond) // what is refused is refused at once: thousands of times a second
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// report writes the summary down until the workers are done, and then the whole.
func report(done <-chan struct{}, file string, t *tally, out io.Writer) error {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := t.look(func(s summary) error { return save(file, s) }); err != nil {
				return err
			}
		case <-done:
			return t.look(func(s summary) error {
				s.Done = true
				return errors.Join(save(file, s), json.NewEncoder(out).Encode(brief(s)))
			})
		}
	}
}

// brief is a summary without what is long.
func brief(s summary) summary {
	s.Buckets, s.Failures = nil, s.Failures[:min(20, len(s.Failures))]
	return s
}

// save replaces the file in one step, so that a reader never sees half of it.
func save(file string, s summary) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the summary: %w", err)
	}
	if err := os.WriteFile(file+".tmp", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}
