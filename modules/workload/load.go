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

// The modes of a load.
const (
	newEach   = "new"        // a connection for every request
	keepAlive = "keep-alive" // every worker keeps its connection
	download  = "download"   // like new, but a request may last as long as data arrives
)

// writeEvery is the maximum age of the summary if the load itself is killed.
const writeEvery = time.Second

type loadOptions struct {
	URL      string
	Mode     string
	Workers  int
	Pause    time.Duration
	Timeout  time.Duration
	Duration time.Duration
	Summary  string
}

func loadFlags(args []string) (loadOptions, error) {
	o := loadOptions{}
	fs := flag.NewFlagSet("load", flag.ContinueOnError)
	fs.StringVar(&o.URL, "url", "", "URL of the requests, as http://HOST:PORT/PATH")
	fs.StringVar(&o.Mode, "mode", newEach, "new: a connection for every request; keep-alive: workers keep theirs; download: requests that take long")
	fs.IntVar(&o.Workers, "workers", 8, "number of concurrent workers")
	fs.DurationVar(&o.Pause, "pause", 0, "pause of a worker between two requests")
	fs.DurationVar(&o.Timeout, "timeout", 3*time.Second, "timeout for a connection, and for the next data of a response")
	fs.DurationVar(&o.Duration, "duration", 0, "duration of the load; 0: until SIGTERM")
	fs.StringVar(&o.Summary, "summary", "", "file for the summary, in addition to standard output")
	if err := parse(fs, args); err != nil {
		return o, err
	}
	switch {
	case o.Workers < 1 || o.Workers > 1000:
		return o, fmt.Errorf("--workers is %d: write a number from 1 to 1000", o.Workers)
	case o.Mode != newEach && o.Mode != keepAlive && o.Mode != download:
		return o, fmt.Errorf("--mode is %q: write new, keep-alive or download", o.Mode)
	case o.Timeout <= 0:
		return o, errors.New("--timeout must be more than 0")
	}
	return o, nil
}

// load sends requests until ctx ends (SIGTERM) or the duration is over, and writes a
// summary. Failed requests are not an error.
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
	t := newCounter()
	if o.Mode == download {
		// Without this request, counting would start at the end of the first
		// download.
		first := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/"}
		work(ctx, o, newClient(first, false, o.Timeout), t, t.started)
	}
	var workers sync.WaitGroup
	for range o.Workers {
		c := newClient(target, o.Mode == keepAlive, o.Timeout)
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

// work is one worker. It works until ctx ends or enough returns true.
func work(ctx context.Context, o loadOptions, c *client, t *counter, enough func() bool) {
	defer c.close()
	// A short request is completed; a download would take too long.
	asking := context.WithoutCancel(ctx)
	if o.Mode == download {
		asking = ctx
	}
	for ctx.Err() == nil && !enough() {
		r := request{Began: time.Now(), Reused: c.conn != nil}
		r.Err = c.do(asking)
		r.Ended = time.Now()
		if asking.Err() != nil {
			return // aborted: the result does not count
		}
		t.count(r)
		wait := o.Pause
		if r.Err != nil {
			wait = max(wait, 5*time.Millisecond) // refused connections would otherwise repeat thousands of times per second
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// report saves the summary periodically until the workers are done, and then prints
// it.
func report(done <-chan struct{}, file string, t *counter, out io.Writer) error {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := t.withSummary(func(s summary) error { return save(file, s) }); err != nil {
				return err
			}
		case <-done:
			return t.withSummary(func(s summary) error {
				s.Done = true
				return errors.Join(save(file, s), json.NewEncoder(out).Encode(abridge(s)))
			})
		}
	}
}

// abridge removes the long parts of a summary.
func abridge(s summary) summary {
	s.Buckets, s.Failures = nil, s.Failures[:min(20, len(s.Failures))]
	return s
}

// save replaces the file atomically, so that a reader never sees a partial file.
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
