// Program replay evaluates the alerts and the dashboards of Lifeboat's chart over a recording of the
// metrics of its processes. It reads the recording from standard input and writes JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lifeboat-dev/lifeboat/modules/prometheus"
)

func main() {
	file := flag.String("rules", "", "path of the rule file")
	hold := flag.Duration("hold", 0, "for how long the last state is held after the recording")
	flag.Parse()
	if err := run(context.Background(), *file, *hold); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// result is the output.
type result struct {
	// Firing says how long after the start of the recording each alert fired first.
	Firing map[string]string `json:"firing"`
	// Empty are the panels without data during the recording.
	Empty []string `json:"empty"`
}

func run(ctx context.Context, file string, hold time.Duration) (err error) {
	recording, err := prometheus.ReadRecording(os.Stdin)
	if err != nil {
		return err
	}
	alerts, err := prometheus.ReadAlerts(file)
	if err != nil {
		return fmt.Errorf("reading the rules: %w", err)
	}
	dir, err := os.MkdirTemp("", "lifeboat-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recorded, err := prometheus.Store(ctx, dir, recording, hold)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, recorded.Close()) }()
	engine := prometheus.NewEngine()
	fires, err := prometheus.Firing(ctx, alerts, engine, recorded, recorded.Times)
	if err != nil {
		return err
	}
	out := result{Firing: map[string]string{}}
	for name, at := range fires {
		out.Firing[name] = at.Sub(recorded.Times[0]).Round(time.Second).String()
	}
	if out.Empty, err = prometheus.EmptyPanels(ctx, engine, recorded, recorded.Times[:recorded.Scraped]); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
