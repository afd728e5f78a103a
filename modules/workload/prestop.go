package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type preStopOptions struct {
	Sleep        time.Duration
	Leave        string
	Pod, Journal string
}

func preStopFlags(args []string) (preStopOptions, error) {
	o := preStopOptions{}
	fs := flag.NewFlagSet("prestop", flag.ContinueOnError)
	fs.DurationVar(&o.Sleep, "sleep", 10*time.Second, "how long the hook takes")
	fs.StringVar(&o.Leave, "leave", "", "URL of the server's /leave, called when the hook begins: the server then closes every connection after its response")
	journalFlags(fs, &o.Pod, &o.Journal)
	return o, parse(fs, args)
}

// journalFlags adds the flags that a server and its hook share.
func journalFlags(fs *flag.FlagSet, pod, file *string) {
	fs.StringVar(pod, "pod", podName(), "name in the journal")
	fs.StringVar(file, "journal", "", "file for the journal, in addition to standard output")
}

// preStop is a preStop hook: it begins, sleeps, and ends. The kubelet does not log a
// hook's output, so it writes to the container's output.
func preStop(ctx context.Context, o preStopOptions) error {
	var out io.Writer
	if f, err := os.OpenFile("/proc/1/fd/1", os.O_WRONLY, 0); err == nil {
		defer f.Close()
		out = f
	}
	j, err := openJournal(o.Pod, o.Journal, out)
	if err != nil {
		return err
	}
	j.note(hookBegin)
	if o.Leave != "" {
		if err := callLeave(ctx, o.Leave); err != nil {
			return err
		}
	}
	select {
	case <-time.After(o.Sleep):
		j.note(hookEnd)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func callLeave(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return fmt.Errorf("calling the server's /leave: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("calling the server's /leave: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("calling the server's /leave: %s", resp.Status)
	}
	return nil
}
