package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// stage is what one lifeboatd used in one period of BenchmarkScale. Memory is in MiB.
type stage struct {
	Seconds float64 `json:"seconds"`
	// Peak is the most of all samples, and Settled is the last one.
	Peak    memoryPeak `json:"peak"`
	Settled memory     `json:"settled"`
	// Heap is the size of the live objects at the last garbage collection.
	Heap       float64 `json:"heap"`
	Goroutines int     `json:"goroutines"`
	// CPU is the processor time in seconds.
	CPU float64 `json:"cpu"`
	// ReceivedMiB is what the process read: from the API server after compression, and from the
	// emulated AWS.
	ReceivedMiB float64 `json:"receivedMiB"`
	// Requests are those to the API server. AWS has those to AWS, also of other replicas.
	Requests requests `json:"requests"`
	AWS      requests `json:"aws"`
}

// garbagePercent is lifeboatd's GOGC.
const garbagePercent = 25

// stage measures what a replica uses while do runs.
func (r *rig) stage(p replica, do func()) stage {
	r.Helper()
	read, used, calls, began := bytesRead(r, p.PID()), cpuOf(r, p.PID()), r.countCalls(), time.Now()
	log, samples := r.audit(), sampleMemory(p.PID())
	do()
	s := stage{Peak: samples.stop(), Seconds: time.Since(began).Seconds(), AWS: calls()}
	r.must(log.read())
	s.Requests = log.between(began, time.Now())
	var err error
	if s.Settled, err = memoryOf(p.PID()); err != nil {
		r.Fatal(logEnd{r, errors.Join(err, p.Err())}) // it has ended, for example because it lost its lease
	}
	// The collector starts at (1+GOGC/100) times the live heap (Go documentation, "A Guide to the
	// Go Garbage Collector").
	s.Heap = r.gauge(p, "go_memstats_next_gc_bytes") / (1 + garbagePercent/100.0) / (1 << 20)
	s.Goroutines = int(r.gauge(p, "go_goroutines"))
	s.CPU = cpuOf(r, p.PID()) - used
	s.ReceivedMiB = (bytesRead(r, p.PID()) - read) / (1 << 20)
	return s
}

// bytesRead returns how much a process has read, including sockets (proc_pid_io(5), rchar).
func bytesRead(r *rig, pid int) float64 {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	r.must(err)
	_, after, _ := strings.Cut("\n"+string(text), "\nrchar: ")
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseFloat(line, 64)
	r.must(err)
	return n
}

// countCalls counts the calls of the emulated AWS until the returned function is called.
func (r *rig) countCalls() func() requests {
	var mu sync.Mutex
	n, ended := requests{}, false
	r.cloud.Gate.Watch(func(q *wire.Request, _ *wire.Error) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			n[q.Service+" "+q.Action]++
		}
	})
	return func() requests {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		return n
	}
}
