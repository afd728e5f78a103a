package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const nodeName = "ip-10-0-1-7.eu-west-1.compute.internal"

// apiServer serves the requests that the agent may make, and rejects all
// others.
type apiServer struct {
	mu    sync.Mutex
	node  corev1.Node
	own   []byte // the NodeNotice
	asked []string
	lax   bool // the admission policy is not in force
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	notices := "/apis/lifeboat.dev/v1beta1/nodenotices"
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v1/nodes/" + nodeName:
		_ = json.NewEncoder(w).Encode(s.node)
	case "POST " + notices:
		if r.URL.Query().Get("dryRun") != "" {
			if s.lax {
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(body)
				return
			}
			refuse(w, http.StatusForbidden, "ValidatingAdmissionPolicy 'lifeboat-agent' with binding 'lifeboat-agent' denied request")
			return
		}
		s.own = body
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case "GET " + notices + "/" + nodeName:
		if s.own == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		_, _ = w.Write(s.own)
	default:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
}

func refuse(w http.ResponseWriter, code int32, message metav1.StatusReason) {
	reason := metav1.StatusReasonForbidden
	if code == http.StatusNotFound {
		reason = metav1.StatusReasonNotFound
	}
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(message),
	})
}

// written is the NodeNotice as written, or nil.
func (s *apiServer) written() *v1beta1.NodeNotice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own v1beta1.NodeNotice
	if s.own == nil || json.Unmarshal(s.own, &own) != nil {
		return nil
	}
	return &own
}

// kubeconfig writes a kubeconfig for a server.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	return reply.StatusCode, string(body)
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func TestAgentOfNode(t *testing.T) {
	server, _ := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	metadata, stop, err := server.States.IMDS.Serve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	api := &apiServer{lax: true, node: corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "node-uid"},
	}}
	cluster := httptest.NewServer(api)
	t.Cleanup(cluster.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata)
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	c := AgentConfig{
		Kubeconfig: kubeconfig(t, cluster.URL), NodeName: nodeName, PollInterval: time.Second,
		MetricsAddress: freeAddress(t), HealthAddress: freeAddress(t),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunAgent(ctx, c) }()
	until(t, "it waits for the admission policy", func() bool {
		code, why := get(t, c.HealthAddress, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(why, "the ValidatingAdmissionPolicy lifeboat-agent is not in force")
	})
	api.mu.Lock()
	api.lax = false
	api.mu.Unlock()
	until(t, "it says what it waits for", func() bool {
		code, why := get(t, c.HealthAddress, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(why, "no spec.providerID yet")
	})
	if code, _ := get(t, c.HealthAddress, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d", code)
	}
	api.mu.Lock()
	api.node.Spec.ProviderID = "aws:///us-east-1a/" + id
	api.mu.Unlock()
	until(t, "it is ready", func() bool { code, _ := get(t, c.HealthAddress, "/readyz"); return code == http.StatusOK })
	if err := server.States.EC2.Interrupt([]string{id}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the notice is written", func() bool { return api.written() != nil })
	own := api.written()
	if own.Name != nodeName || own.Spec.InstanceID != id || own.Spec.NodeUID != "node-uid" || len(own.Spec.Notices) != 1 ||
		own.Spec.Notices[0].Kind != notice.KindSpotInterruption || own.Labels != nil || own.Finalizers != nil || own.OwnerReferences != nil {
		t.Errorf("written: %+v", own)
	}
	until(t, "its metrics say so", func() bool {
		_, text := get(t, c.MetricsAddress, "/metrics")
		return strings.Contains(text, `lifeboat_source_up{source="imds"} 1`) && strings.Contains(text, "process_resident_memory_bytes")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("RunAgent: %v", err)
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, asked := range slices.Compact(slices.Sorted(slices.Values(api.asked))) {
		if !strings.Contains(asked, "/nodes/"+nodeName) && !strings.Contains(asked, "/nodenotices") {
			t.Errorf("the agent asked for more than it may: %s", asked)
		}
	}
}

func TestAgentStartErrorsSayWhatToWrite(t *testing.T) {
	good := AgentConfig{NodeName: nodeName, PollInterval: 2 * time.Second}
	if err := good.check(); err != nil {
		t.Errorf("what is right: %v", err)
	}
	for says, change := range map[string]func(*AgentConfig){
		"field spec.nodeName":   func(c *AgentConfig) { c.NodeName = "" },
		"not a valid node name": func(c *AgentConfig) { c.NodeName = "$(NODE_NAME)" },
		"from 1s to 30s":        func(c *AgentConfig) { c.PollInterval = time.Millisecond },
	} {
		c := good
		change(&c)
		if err := RunAgent(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not speak of %q", err, says)
		}
	}
	err := serve(t.Context(), "127.0.0.1:notaport", http.NotFoundHandler())
	if err == nil || !strings.Contains(err.Error(), "set another address") {
		t.Errorf("a wrong address: %v", err)
	}
}

func TestAgentFindsItsNode(t *testing.T) {
	api := &apiServer{node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}}
	cluster := httptest.NewServer(api)
	t.Cleanup(cluster.Close)
	config, err := clusterConfig(kubeconfig(t, cluster.URL))
	if err != nil {
		t.Fatal(err)
	}
	kube, err := agentClient(config)
	if err != nil {
		t.Fatal(err)
	}
	node := ownNode{kube, nodeName}
	for providerID, want := range map[string]string{
		"":                                      "no spec.providerID yet",
		"gce://project/zone/name":               "is not an EC2 instance",
		"aws:///eu-west-1a/fargate-ip-10-0-0-1": "is not an EC2 instance",
		"aws:///eu-west-1a/i-0a1b2c3d4e5f60718": "",
	} {
		api.node.Spec.ProviderID = providerID
		self, err := node.identify(t.Context())
		id := self.InstanceID
		switch {
		case want == "" && (err != nil || id != "i-0a1b2c3d4e5f60718"):
			t.Errorf("%q: %q, %v", providerID, id, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v does not speak of %q", providerID, err, want)
		}
	}
	if _, err := (ownNode{kube, "another"}).identify(t.Context()); err == nil || !strings.Contains(err.Error(), "grant get on nodes") {
		t.Errorf("a node that it may not read: %v", err)
	}
}
