package scrape

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Result is what the rules say about a recording.
type Result struct {
	// Firing are the alerts that fire, with the time from the start of the recording.
	Firing map[string]string `json:"firing"`
	// Empty are the panels of the dashboards whose queries have no data.
	Empty []string `json:"empty"`
}

// Evaluate evaluates the chart's rules with the program replay. After the recording, the last state
// is held for so long: an alert with a duration of hours does not make a test wait.
func Evaluate(ctx context.Context, replay, rules string, recording []Scrape, hold time.Duration) (Result, error) {
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, s := range recording {
		if err := enc.Encode(s); err != nil {
			return Result{}, err
		}
	}
	cmd := exec.CommandContext(ctx, replay, "-rules", rules, "-hold", hold.String())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, os.Stderr
	var r Result
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("evaluating the rules: %w", err)
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}
