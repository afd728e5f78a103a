package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// update is a message to a page. A part that did not change is left out.
type update struct {
	Now view.Millis `json:"now"`
	// All is true if Rows are all interruptions, and not only the changed ones.
	All  bool       `json:"all,omitempty"`
	Rows []view.Row `json:"rows,omitempty"`
	// Gone are the names of interruptions that were deleted.
	Gone    []string      `json:"gone,omitempty"`
	Cluster *cluster      `json:"cluster,omitempty"`
	Summary *view.Summary `json:"summary,omitempty"`
	Needs   []record.Need `json:"needs,omitempty"`
	// NeedsNone is true if nothing waits for a person any more.
	NeedsNone bool         `json:"needsNone,omitempty"`
	Health    *view.Health `json:"health,omitempty"`
	Wiring    *view.Wiring `json:"wiring,omitempty"`
}

// cluster is what the page says about the connection to the cluster.
type cluster struct {
	Name    string `json:"name"`
	Program string `json:"program"`
	Listed  bool   `json:"listed"`
	// Failures say what could not be read, and why.
	Failures []string `json:"failures"`
}

// sent is what a page has, as JSON: a part is sent again if it differs.
type sent map[string][]byte

// differs reports whether a part is not what the page has.
func (s sent) differs(part string, value any) bool {
	text, err := json.Marshal(value)
	if err != nil || bytes.Equal(s[part], text) {
		return false
	}
	s[part] = text
	return true
}

// next returns what changed for a page. It takes the names of changed interruptions from the page.
func (s *state) next(p *page, has sent) update {
	now := s.o.Now()
	s.mu.Lock()
	u := update{Now: view.At(now), All: p.all}
	names := slices.Collect(maps.Keys(p.changed))
	if p.all {
		names = slices.Collect(maps.Keys(s.interruptions))
	}
	p.changed, p.all = map[string]bool{}, false
	var changed []*v1beta1.Interruption
	for _, name := range names {
		if in := s.interruptions[name]; in != nil {
			changed = append(changed, in)
			continue
		}
		u.Gone = append(u.Gone, name)
	}
	all, health, c := s.sorted(), s.health, s.cluster()
	wiring := s.wiring(all, now)
	s.mu.Unlock()
	for _, in := range changed {
		u.Rows = append(u.Rows, view.NewRow(in))
	}
	u.addParts(has, c, health, wiring, view.Summarize(all, now))
	needs := []record.Need{}
	for _, in := range all {
		needs = append(needs, record.Needs(in, s.o.Program, now)...)
	}
	record.SortNeeds(needs)
	if has.differs("needs", needs) {
		u.Needs, u.NeedsNone = needs, len(needs) == 0
	}
	return u
}

// addParts adds the parts that differ from what the page has.
func (u *update) addParts(has sent, c cluster, health view.Health, wiring view.Wiring, summary view.Summary) {
	if has.differs("cluster", c) {
		u.Cluster = &c
	}
	if has.differs("health", health) {
		u.Health = &health
	}
	if has.differs("wiring", wiring) {
		u.Wiring = &wiring
	}
	if has.differs("summary", summary) {
		u.Summary = &summary
	}
}

// isEmpty reports whether an update says nothing.
func (u *update) isEmpty() bool {
	return !u.All && len(u.Rows) == 0 && len(u.Gone) == 0 && u.Cluster == nil && u.Summary == nil && u.Needs == nil &&
		u.Health == nil && u.Wiring == nil
}

func (s *state) cluster() cluster {
	c := cluster{Name: s.o.Cluster, Program: s.o.Program, Listed: s.listed, Failures: []string{}}
	for _, what := range slices.Sorted(maps.Keys(s.failures)) {
		if text := s.failures[what]; text != "" {
			c.Failures = append(c.Failures, text)
		}
	}
	return c
}

func (s *state) wiring(all []*v1beta1.Interruption, now time.Time) view.Wiring {
	w := view.Wiring{Degraded: []view.Degraded{}, Groups: []view.Group{}, Policies: []view.Policy{}}
	for _, in := range all {
		if d, degraded := view.NewDegraded(in, now); degraded {
			w.Degraded = append(w.Degraded, d)
		}
	}
	for _, g := range s.groups {
		w.Groups = append(w.Groups, view.NewGroup(g))
	}
	for _, p := range s.policies {
		w.Policies = append(w.Policies, view.NewPolicy(p))
	}
	w.Sort()
	return w
}
