package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/console"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
)

var consoleURL = regexp.MustCompile(`http://\S+/`)

// printed passes on what the program prints.
type printed chan string

func (p printed) Write(text []byte) (int, error) {
	p <- string(text)
	return len(text), nil
}

func TestConsoleServesUntilCtrlC(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in := interruption(spotNotice("a", 10*time.Second))
	h := harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, append(twoNodes(), in, pod("shop", "web-1", "web", "ReplicaSet", 30))...)}
	lines := make(printed, 10)
	h.setup = func(s *session) { s.out.Writer = lines }
	done := make(chan result, 1)
	go func() { done <- h.run(ctx, "console", "--port", "0") }()
	url := consoleURL.FindString(<-lines)
	get := func(path string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if page := get(""); !strings.Contains(page, "<title>Lifeboat console</title>") {
		t.Error(page)
	}
	if nodes := get("api/nodes"); !strings.Contains(nodes, nodeName) {
		t.Error(nodes)
	}
	var plan view.Plan
	if err := json.Unmarshal([]byte(get("api/plan?node="+nodeName)), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Lanes) != 1 || plan.Lanes[0].Label != "shop/web-1" || plan.Tone != view.Good || plan.Command != "lifeboat plan "+nodeName {
		t.Errorf("%+v", plan)
	}
	stop()
	if r := <-done; r.code != ExitOK {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// The page and `lifeboat plan` say the same.
func TestConsolePlansAsCommandDoes(t *testing.T) {
	objects := append(twoNodes(), pod("shop", "web-1", "web", "ReplicaSet", 30), pod("shop", "slow-0", "slow", "StatefulSet", 600), budget("shop", "web", 1, 0))
	var c client.WithWatch
	h := harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, objects...)}
	var options console.Options
	h.setup = func(s *session) {
		c = h.cluster
		options = s.consoleOptions(cluster{WithWatch: c}, []string{"localhost:1"})
	}
	printed := h.run(t.Context(), "plan", nodeName, "--kind", "spot")
	plan, err := options.Plan(t.Context(), console.PlanRequest{Node: nodeName, Kind: "spot"})
	if err != nil {
		t.Fatal(err)
	}
	texts := append([]string{plan.Verdict, plan.Facts[0].Text}, plan.Fixes...)
	for _, lane := range plan.Lanes {
		texts = append(texts, lane.Label)
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, text := range texts {
		if !strings.Contains(words(printed.out), words(text)) {
			t.Errorf("`lifeboat plan` does not print %q:\n%s", text, printed.out)
		}
	}
	if plan.Tone != view.Bad || len(plan.Fixes) == 0 || plan.Command != "lifeboat plan "+nodeName+" --kind spot" {
		t.Errorf("%+v", plan)
	}
	if _, err := options.Plan(t.Context(), console.PlanRequest{Node: nodeName, Kind: "spo"}); err == nil || !strings.Contains(err.Error(), `unknown kind "spo"`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestConsoleAnswersOnlyForItsAddress(t *testing.T) {
	for address, want := range map[string][]string{
		"127.0.0.1": {"127.0.0.1:80", "localhost:80"},
		"::1":       {"[::1]:80", "localhost:80"},
		"10.1.2.3":  {"10.1.2.3:80"},
	} {
		got := consoleHosts(&net.TCPAddr{IP: net.ParseIP(address), Port: 80})
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: hosts %v, want %v", address, got, want)
		}
	}
	for _, host := range consoleHosts(&net.TCPAddr{IP: net.IPv4zero, Port: 80}) {
		if strings.HasPrefix(host, "0.0.0.0") {
			t.Errorf("%s is no address of a page", host)
		}
	}
}

func TestConsoleNamesWhatIsWrong(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h := harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{})}
	for args, want := range map[string]string{
		"--port 70000":   "write a number from 0 to 65535",
		"-o json":        "console has no -o json",
		"--port " + port: "another program uses it; choose another --port",
	} {
		if r := h.run(t.Context(), append([]string{"console"}, strings.Fields(args)...)...); r.code == ExitOK || !strings.Contains(r.err, want) {
			t.Errorf("console %s: exit code %d: %s", args, r.code, r.err)
		}
	}
}
