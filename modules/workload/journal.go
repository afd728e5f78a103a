package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// What happens in the life of a server, as its journal has it.
const (
	started     = "started"
	ready       = "ready"
	hookBegin   = "hook-begin"
	hookEnd     = "hook-end"
	sigterm     = "sigterm"
	lastRequest = "last-request" // Time is when it was answered; Requests counts them all
	exited      = "exit"
)

// entry is a line of a journal.
type entry struct {
	Time     time.Time `json:"time"`
	Pod      string    `json:"pod"`
	What     string    `json:"what"`
	Requests int64     `json:"requests,omitempty"`
}

// journal is written line by line, each handed to the kernel before the next
// thing happens. An instance's power cut kills processes and not the machine's
// kernel, so it takes nothing of it, and waiting for the disk, which can take
// longer than a grace period leaves, is not needed. Several processes may write
// to one.
type journal struct {
	pod string
	mu  sync.Mutex
	to  []io.Writer
}

// openJournal writes to out, which may be nil, and to the file if one is named.
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

// write writes a line in one call, so that lines of other processes do not come
// between. An error has nowhere to go: what the journal lacks, the test misses.
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
	name, _ := os.Hostname() // within a pod it is the pod's
	return name
}
