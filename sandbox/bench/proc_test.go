package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// cpu is the processor time of each process in seconds. Bench is this process, which also runs the
// AWS emulator.
type cpu struct {
	APIServer float64 `json:"kube-apiserver"`
	Etcd      float64 `json:"etcd"`
	Lifeboatd float64 `json:"lifeboatd"`
	Bench     float64 `json:"bench"`
}

func (c cpu) minus(o cpu) cpu {
	return cpu{c.APIServer - o.APIServer, c.Etcd - o.Etcd, c.Lifeboatd - o.Lifeboatd, c.Bench - o.Bench}
}

func (r *rig) cpu() cpu {
	r.Helper()
	c := cpu{APIServer: cpuOf(r, r.cluster.PID()), Etcd: cpuOf(r, r.cluster.etcd.PID()), Bench: cpuOf(r, os.Getpid())}
	if r.process != nil {
		c.Lifeboatd = cpuOf(r, r.process.PID())
	}
	return c
}

// cpuOf reads the processor time of a process, in ticks of 10 ms (proc_pid_stat(5)). It is 0 for
// a process that has ended.
func cpuOf(tb testing.TB, pid int) float64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	ticks := 0
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		must(tb, err)
		ticks += n
	}
	return float64(ticks) / 100
}

// memory is the memory of a process, in MiB (proc_pid_status(5)). Anonymous memory is the
// process' own. File memory is mostly pages of the program, which the kernel can drop.
type memory struct {
	Resident  float64 `json:"resident"`
	Anonymous float64 `json:"anonymous"`
	File      float64 `json:"file"`
}

func memoryOf(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for name, field := range map[string]*float64{"VmRSS": &m.Resident, "RssAnon": &m.Anonymous, "RssFile": &m.File} {
		_, after, ok := strings.Cut(string(text), "\n"+name+":")
		if !ok {
			return memory{}, fmt.Errorf("reading the memory of process %d: no field %s: run this on Linux", pid, name)
		}
		kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
		if err != nil {
			return memory{}, fmt.Errorf("reading %s: %w", name, err)
		}
		*field = kib / 1024
	}
	return m, nil
}

// memoryPeak is the sample with the most resident memory, and the most anonymous memory
// of any sample. VmHWM would miss no peak, but cannot be split.
type memoryPeak struct {
	memory
	MostAnonymous float64 `json:"mostAnonymous"`
}

// sampler samples the memory of a process every 200 ms.
type sampler struct {
	pid  int
	done chan struct{}
	wait sync.WaitGroup
	mu   sync.Mutex
	peak memoryPeak
}

func (r *rig) sampleMemory() *sampler { return sampleMemory(r.process.PID()) }

func sampleMemory(pid int) *sampler {
	s := &sampler{pid: pid, done: make(chan struct{})}
	s.wait.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			s.sample()
			select {
			case <-s.done:
				return
			case <-tick.C:
			}
		}
	})
	return s
}

func (s *sampler) sample() {
	now, err := memoryOf(s.pid)
	if err != nil {
		return // the process has ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peak.MostAnonymous = max(s.peak.MostAnonymous, now.Anonymous)
	if now.Resident > s.peak.Resident {
		s.peak.memory = now
	}
}

// stop ends the sampling and returns the peak.
func (s *sampler) stop() memoryPeak {
	close(s.done)
	s.wait.Wait()
	return s.peak
}
