package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Condition is what a link does to its connections. The zero value forwards everything.
type Condition struct {
	// Cut keeps all bytes back, as a partition does: connections stay open, and go on afterwards.
	Cut bool `json:"cut,omitempty"`
	// Latency delays each piece of data in each direction.
	Latency time.Duration `json:"latency,omitempty"`
	// Lossy loses packets, which TCP sends again: what is lost, and all data behind it, comes late.
	Lossy bool `json:"lossy,omitempty"`
	// Flaky resets connections at random, each after about a second.
	Flaky bool `json:"flaky,omitempty"`
	// Until is when the condition ends.
	Until time.Time `json:"until"`
}

// at is the condition at a time.
func (c Condition) at(now time.Time) Condition {
	if now.Before(c.Until) {
		return c
	}
	return Condition{}
}

// Conditions are those of all links, by name.
type Conditions map[string]Condition

// path is the file of the conditions in the directory of a sandbox.
func path(dir string) string { return filepath.Join(dir, "links.json") }

// Read reads the conditions; none if there is no file.
func Read(dir string) (Conditions, error) {
	text, err := os.ReadFile(path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Conditions{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the conditions of the links: %w", err)
	}
	all := Conditions{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading the conditions of the links in %s: %w: remove the file", path(dir), err)
	}
	return all, nil
}

// Write replaces the conditions in one step.
func (c Conditions) Write(dir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the conditions of the links: %w", err)
	}
	file, err := os.CreateTemp(dir, "links-*.new")
	if err != nil {
		return fmt.Errorf("writing the conditions of the links: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // it has another name then
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the conditions of the links: %w", err)
	}
	if err := os.Rename(file.Name(), path(dir)); err != nil {
		return fmt.Errorf("writing the conditions of the links: %w", err)
	}
	return nil
}
