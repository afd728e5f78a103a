package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// The events of a server in its journal.
const (
	started     = "started"
	ready       = "ready"
	hookBegin   = "hook-begin"
	hookEnd     = "hook-end"
	sigterm     = "sigterm"
	lastRequest = "last-request" // Time is that of its response; Requests is the number of all
	exited      = "exit"
)

// entry is a line of a journal.
type entry struct {
	Time     time.Time `json:"time"`
	Pod      string    `json:"pod"`
	What     string    `json:"what"`
	Requests int64     `json:"requests,omitempty"`
}

// journal is written line by line, each with one write call before the next action. A
// power failure of an instance kills processes but not the kernel of the host, so no
// line is lost. fsync is not needed and could take longer than the rest of a grace
// period. Several processes can write to the same file.
type journal struct {
	pod string
	mu  sync.Mutex
	to  []io.Writer
}

// openJournal writes to out, if it is not nil, and to the file, if one is named.
func openJournal(pod, file string, out io.Writer) (*journal, error) {
	j := &journal{pod: pod}
	if out != nil {
		j.to = append(j.to, out)
	}
	if file == "" {
		return j, nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j.to = append(j.to, f)
	return j, nil
}

func (j *journal) note(what string) { j.write(entry{Time: time.Now(), What: what}) }

// write writes a line in one call, so that lines of several processes do not mix.
// Errors are ignored: a test notices a missing line.
func (j *journal) write(e entry) {
	e.Pod, e.Time = j.pod, e.Time.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.to {
		_, _ = w.Write(line)
	}
}

func podName() string {
	name, _ := os.Hostname() // in a pod it is the pod's name
	return name
}
