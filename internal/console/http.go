package console

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/console/view"
)

//go:embed assets
var assets embed.FS

const (
	// gather is how long a change waits for others before the page gets them.
	gather = 150 * time.Millisecond
	// refresh is the time between two looks for what changes with time alone, such as an
	// expired hold. It also keeps proxies from closing the connection.
	refresh = 10 * time.Second
	// policy permits only the console's own files. Without inline scripts and styles, text from
	// the cluster can never run.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// Handler returns the pages. All requests only read.
func (c *Console) Handler() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", c.events)
	mux.HandleFunc("GET /api/interruptions/{name}", c.interruption)
	mux.HandleFunc("GET /api/nodes", c.nodes)
	mux.HandleFunc("GET /api/plan", c.plan)
	return c.guard(mux)
}

// guard refuses requests of other sites. A site can resolve its own name to this machine (DNS
// rebinding), and then only the header Host differs.
func (c *Console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !c.o.AnyHost && !slices.Contains(c.o.Hosts, r.Host):
			http.Error(w, fmt.Sprintf("The console does not answer for the host %q. Open http://%s/ instead.", r.Host, c.o.Hosts[0]), http.StatusForbidden)
		case site == "cross-site" || site == "same-site":
			http.Error(w, "The console does not answer requests of other sites. Type its address into the browser.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// events sends updates as server-sent events until the page is closed.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	p, has := c.state.open(), sent{}
	defer c.state.close(p)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		case <-p.wake:
		}
		u := c.state.next(p, has)
		if err := writeEvent(w, &u); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(gather):
		}
	}
}

func writeEvent(w http.ResponseWriter, u *update) error {
	if u.isEmpty() {
		_, err := fmt.Fprint(w, ":\n\n") // a comment
		return err
	}
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", text)
	return err
}

func (c *Console) interruption(w http.ResponseWriter, r *http.Request) {
	d, found := c.state.detail(r.PathValue("name"))
	if !found {
		fail(w, http.StatusNotFound, fmt.Errorf("the cluster has no interruption %s; it can have been deleted", r.PathValue("name")))
		return
	}
	answer(w, d)
}

func (c *Console) nodes(w http.ResponseWriter, r *http.Request) {
	names, err := c.o.Nodes(r.Context())
	if err != nil {
		fail(w, http.StatusBadGateway, err)
		return
	}
	answer(w, names)
}

func (c *Console) plan(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var plan view.Plan
	err := errors.New("name a node")
	if q.Get("node") != "" {
		plan, err = c.o.Plan(r.Context(), PlanRequest{Node: q.Get("node"), Kind: q.Get("kind"), In: q.Get("in"), Code: q.Get("code")})
	}
	if errors.Is(err, context.Canceled) {
		return // the page asked for another plan
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	answer(w, plan)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the page is gone if this fails
}

func fail(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
