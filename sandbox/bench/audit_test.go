package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// auditEvent has the fields that the benchmark reads from the API server's audit log
// (audit.k8s.io/v1, Event).
type auditEvent struct {
	Stage      string    `json:"stage"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	UserAgent  string    `json:"userAgent"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	At         time.Time `json:"stageTimestamp"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// kind names the request by verb and resource; failed requests have kinds of their own.
func (e auditEvent) kind() string {
	what, _, _ := strings.Cut(e.RequestURI, "?")
	if e.ObjectRef != nil {
		what = e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
	}
	kind := e.Verb + " " + what
	if e.Status.Code >= 400 {
		kind += fmt.Sprintf(" (%d)", e.Status.Code)
	}
	return kind
}

// counts reports whether the event counts as a request: a watch when it starts, any other request
// when it completes.
func (e auditEvent) counts() bool {
	return e.Stage == "ResponseStarted" == (e.Verb == "watch")
}

// auditReader reads the requests of lifeboatd in the audit log, as it grows.
type auditReader struct {
	path   string
	offset int64
	events []auditEvent
}

// audit returns a reader that starts at the current end of the log.
func (r *rig) audit() *auditReader {
	r.Helper()
	info, err := os.Stat(r.cluster.auditLog)
	r.must(err)
	return &auditReader{path: r.cluster.auditLog, offset: info.Size()}
}

// read reads the new lines.
func (a *auditReader) read() error {
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the rest is an incomplete line
		}
		a.offset += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if e.UserAgent != floorUserAgent && e.counts() {
			a.events = append(a.events, e)
		}
	}
}

// lastWrite returns when lifeboatd's last write except leases completed.
func (a *auditReader) lastWrite() time.Time {
	var last time.Time
	for _, e := range a.events {
		if slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && e.ObjectRef != nil && e.ObjectRef.Resource != "leases" && e.At.After(last) {
			last = e.At
		}
	}
	return last
}

// last returns when lifeboatd's last request of one of the kinds completed.
func (a *auditReader) last(kinds ...string) time.Time {
	var last time.Time
	for _, e := range a.events {
		if slices.Contains(kinds, e.kind()) && e.At.After(last) {
			last = e.At
		}
	}
	return last
}

// requests are request counts by kind.
type requests map[string]int

// between counts the requests received in a time span.
func (a *auditReader) between(from, to time.Time) requests {
	n := requests{}
	for _, e := range a.events {
		if !e.Received.Before(from) && e.Received.Before(to) {
			n[e.kind()]++
		}
	}
	return n
}

// eviction is the kind of an accepted eviction.
const eviction = "create pods/eviction"

// besides returns the number of requests except evictions and leases.
func (n requests) besides() int {
	sum := 0
	for kind, count := range n {
		if !strings.Contains(kind, "pods/eviction") && !strings.Contains(kind, " leases") {
			sum += count
		}
	}
	return sum
}

// kinds returns the kinds of all counts, sorted.
func kinds(all ...requests) []string {
	names := map[string]bool{}
	for _, n := range all {
		for kind := range n {
			names[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
