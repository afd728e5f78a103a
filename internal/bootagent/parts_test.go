package bootagent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
)

func TestJournals(t *testing.T) {
	t.Parallel()
	mine := Journal{Instance: "i-1", Lives: 3, Served: true, Stages: map[string]time.Time{"image a": now}}
	data, err := json.Marshal(mine)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data string
		want Journal
		fail bool
	}{
		"none":                     {"", Journal{Instance: "i-1", Lives: 1}, false},
		"its own":                  {string(data), mine, false},
		"an image's":               {strings.ReplaceAll(string(data), "i-1", "i-2"), Journal{Instance: "i-1", Lives: 1}, false},
		"cut short":                {string(data[:20]), Journal{Instance: "i-1", Lives: 1}, true},
		"of a release to come":     {`{"instance":"i-1","lives":2,"more":{}}`, Journal{Instance: "i-1", Lives: 2}, false},
		"zeros, after a power cut": {"\x00\x00\x00", Journal{Instance: "i-1", Lives: 1}, true},
	} {
		got, err := readJournal([]byte(c.data), "i-1")
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fail {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	mine.Stages["command c"] = now
	if got := mine.reborn(); got.Lives != 4 || got.Served || len(got.Stages) != 1 {
		t.Errorf("reborn: %+v", got)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "made", "when", "needed"))
	if data, err := d.Read("a"); data != nil || err != nil {
		t.Errorf("what is not there: %q, %v", data, err)
	}
	for _, text := range []string{"one", "another"} {
		if err := d.Write("a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := d.Read("a"); string(data) != text || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	}
	if entries, err := os.ReadDir(string(d)); len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	f := File(filepath.Join(string(d), "a"))
	if data, err := f.Read("whatever"); string(data) != "another" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	for range 2 {
		if err := f.Remove("whatever"); err != nil {
			t.Error(err)
		}
	}
	if err := Dir("/proc/nowhere").Write("a", nil); err == nil {
		t.Error("wrote where nothing can be written")
	}
}

func TestWipePaths(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"/var/lib/cni/networks": true, "/var/lib/kubelet": true, "/var/lib": false, "/": false, "/etc": false, "var/lib/cni/networks": false, "/var/lib/cni/../..": false, "": false,
	} {
		if err := CheckWipe([]string{path}); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	if out, err := Exec(t.Context(), []string{"/bin/sh", "-c", "echo one; echo two >&2"}); err != nil || out != "one\ntwo" {
		t.Errorf("%q, %v", out, err)
	}
	_, err := Exec(t.Context(), []string{"/bin/sh", "-c", "echo first; echo why; exit 3"})
	if err == nil || !strings.Contains(err.Error(), "exit status 3: why") {
		t.Error(err)
	}
	if _, err := Exec(t.Context(), nil); err == nil {
		t.Error("ran nothing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Exec(ctx, []string{"/bin/sh", "-c", "sleep 60 & wait"}); err == nil || time.Since(began) > 4*time.Second {
		t.Errorf("ended after %s: %v", time.Since(began), err)
	}
	if out, err := Exec(t.Context(), []string{"/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo end"}); err != nil || len(out) > maxOutput || !strings.HasSuffix(out, "end") {
		t.Errorf("%d bytes are kept, %v", len(out), err)
	}
}

func TestDiskUsed(t *testing.T) {
	t.Parallel()
	if used, err := DiskUsed("/")(); used == 0 || err != nil {
		t.Errorf("%d, %v", used, err)
	}
	if _, err := DiskUsed("/nowhere")(); err == nil {
		t.Error("read nothing")
	}
}

// apiServer is an API server with these nodes.
func apiServer(t *testing.T, nodes map[string]*corev1.Node) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/")
		node, known := nodes[name]
		switch {
		case strings.HasPrefix(name, "forbidden"):
			w.WriteHeader(http.StatusForbidden)
		case name == "broken":
			w.WriteHeader(http.StatusInternalServerError)
		case !known:
			w.WriteHeader(http.StatusNotFound)
		default:
			_ = json.NewEncoder(w).Encode(node)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` + server.URL +
		`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestNodeReader(t *testing.T) {
	t.Parallel()
	node := func(name, provider string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: provider},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)},
			}},
		}
	}
	file := apiServer(t, map[string]*corev1.Node{
		"mine": node("mine", "aws:///eu-west-1a/i-1"), "new": node("new", ""), "other": node("other", "aws:///eu-west-1a/i-11"),
	})
	for name, c := range map[string]struct {
		known string
		names []string
		want  Node
		says  string
	}{
		"known":                 {"mine", nil, Node{Name: "mine", Ready: true, Heartbeat: now}, ""},
		"known, and gone":       {"gone", nil, Node{}, ""},
		"known, another's now":  {"other", nil, Node{}, ""},
		"found":                 {"", []string{"nowhere", "mine"}, Node{Name: "mine", Ready: true, Heartbeat: now}, ""},
		"just registered":       {"", []string{"new"}, Node{Name: "new", Ready: true, Heartbeat: now}, ""},
		"forbidden":             {"", []string{"forbidden"}, Node{}, "--node-name"},
		"forbidden, then found": {"", []string{"forbidden", "mine"}, Node{Name: "mine", Ready: true, Heartbeat: now}, ""},
		"broken":                {"broken", nil, Node{}, "answers 500"},
	} {
		r := NodeReader{Kubeconfig: file, Names: func(context.Context) []string { return c.names }}
		got := r.Read(t.Context(), "i-1", c.known)
		got.Heartbeat = got.Heartbeat.UTC()
		if c.says != "" {
			if !strings.Contains(got.Trouble, c.says) {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if c.want.Heartbeat.IsZero() {
			got.Heartbeat = time.Time{}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPIServerUnreachable(t *testing.T) {
	t.Parallel()
	kubelet := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(kubelet.Close)
	if got := (NodeReader{Kubeconfig: "/nowhere/kubeconfig", Healthz: kubelet.URL}).Read(t.Context(), "i-1", ""); !got.Healthz || !got.Ready {
		t.Errorf("%+v", got)
	}
	if got := (NodeReader{Kubeconfig: "/nowhere/kubeconfig", Healthz: "http://127.0.0.1:1"}).Read(t.Context(), "i-1", ""); got.Ready {
		t.Errorf("%+v", got)
	}
	if got := (NodeReader{Kubeconfig: "/nowhere/kubeconfig"}).Read(t.Context(), "i-1", ""); !strings.Contains(got.Trouble, "no kubeconfig") {
		t.Errorf("%+v", got)
	}
	if got := (NodeReader{Kubeconfig: os.DevNull, Names: func(context.Context) []string { return nil }}).Read(t.Context(), "i-1", "n"); got.Trouble == "" {
		t.Errorf("%+v", got)
	}
}

func TestStatusText(t *testing.T) {
	t.Parallel()
	s := Status{
		Time: ago(time.Hour), Instance: "i-1", Goal: Serve, Since: ago(time.Minute), Target: "InService", Group: "g", State: "Pending:Wait",
		Gate: true, Node: "n", Prepared: 1, Stages: 2, Lives: 1, Doing: DoWait, Reason: "the node n is not Ready", Next: now.Add(time.Minute), Denied: "AccessDenied; allow it",
	}
	text := s.Text(now)
	for _, want := range []string{
		"this is from 1h0m0s ago", "i-1, life 1", "Serve since 07:59:00 UTC (metadata: InService)", "Pending:Wait in group g", "open: the kubelet may run",
		"1 of 2", "wait: the node n is not Ready", "in 1m0s", "AccessDenied; allow it",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, text)
		}
	}
	if text := (Status{Time: now}).Text(now); !strings.Contains(text, "closed") || strings.Contains(text, "warning") {
		t.Error(text)
	}
	if _, err := ReadStatus([]byte("{")); err == nil {
		t.Error("read half a status")
	}
}
