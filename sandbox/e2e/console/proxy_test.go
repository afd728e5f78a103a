//go:build e2e

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const (
	namespace = "lifeboat-system"
	proxyPath = "/api/v1/namespaces/" + namespace + "/services/lifeboat-console:http/proxy/"
)

// TestProxyShowsConsoleToPermittedPeople runs the program of the chart's pod, with the rights of its
// service account, behind the API server's proxy. A person with the chart's role sees the page and
// its updates; another person does not.
func TestProxyShowsConsoleToPermittedPeople(t *testing.T) {
	shared.installConsole(t)
	shared.serveConsole(t)
	bindRole(t, "vera")
	page := shared.asPerson(t, "vera")
	body := until200(t, page, "")
	for _, path := range []string{"main.js", "style.css", "icon.svg"} {
		if !strings.Contains(body, `"`+path+`"`) { // a path from the root would leave the proxy
			t.Errorf("the page does not name %s by a relative URL", path)
		}
		until200(t, page, path)
	}
	lines := follow(t, page)
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-0proxied"}, Spec: v1beta1.InterruptionSpec{
		InstanceID: "i-0proxied", Notices: []v1beta1.Notice{{ID: "a", Kind: "SpotInterruption", Source: "sqs", Time: metav1.Now(), ReceivedTime: metav1.NowMicro()}},
	}}
	if err := shared.client.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.client.Delete(context.WithoutCancel(t.Context()), in) })
	awaitRow(t, lines, in.Name)
	var detail struct{ Name string }
	if err := json.Unmarshal([]byte(until200(t, page, "api/interruptions/"+in.Name)), &detail); err != nil || detail.Name != in.Name {
		t.Errorf("%+v, %v", detail, err)
	}
	if code, body := get(t, page, http.MethodGet, "api/plan?node=x"); code != http.StatusBadRequest || !strings.Contains(body, "lifeboat plan NODE") {
		t.Errorf("plan: %d %s", code, body)
	}
	if code, _ := get(t, page, http.MethodPost, ""); code != http.StatusForbidden { // the role permits no create
		t.Errorf("a POST is answered with %d", code)
	}

	if code, body := get(t, shared.asPerson(t, "mallory"), http.MethodGet, ""); code != http.StatusForbidden || !strings.Contains(body, "services/proxy") {
		t.Errorf("a person without the role: %d %s", code, body)
	}
}

// installConsole creates the chart's objects of the console, and replaces its pod by an endpoint.
func (r *rig) installConsole(t *testing.T) {
	t.Helper()
	m, err := chart.Render(t.Context(), chart.Options{Values: map[string]any{
		"image":   map[string]any{"repository": "lifeboatd"},
		"aws":     map[string]any{"queueURL": "https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod"},
		"console": map[string]any{"enabled": true, "allowFrom": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/16"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := r.client.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	var names []string
	for _, o := range m.Objects {
		if o.GetName() != "lifeboat-console" && o.GetName() != "lifeboat-console-viewer" || o.GetKind() == "Deployment" {
			continue
		}
		if o.GetKind() == "Service" { // the endpoint is that of a process on this machine
			unstructured.RemoveNestedField(o.Object, "spec", "selector")
		}
		if err := r.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		names = append(names, o.GetKind())
	}
	if len(names) != 6 {
		t.Fatalf("the chart has %v for the console", names)
	}
}

// serveConsole starts lifeboatd as the chart's pod does, with its service account.
func (r *rig) serveConsole(t *testing.T) {
	t.Helper()
	daemon, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := r.plane.UserKubeconfig("system:serviceaccount:" + namespace + ":lifeboat-console")
	if err != nil {
		t.Fatal(err)
	}
	address := outside(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), daemon, "console", "--kubeconfig", kubeconfig, "--bind-address", net.JoinHostPort(address, "0"),
		"--health-probe-bind-address", "0", "--cluster-name", "prod", "--text-logs")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() })
	port := int32(0)
	for deadline := time.Now().Add(time.Minute); port == 0; time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(log.Name())
		if _, rest, found := strings.Cut(string(text), "address="+address+":"); found {
			n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			port = int32(n)
		}
		if time.Now().After(deadline) {
			t.Fatalf("lifeboatd does not serve:\n%s", text)
		}
	}
	r.createEndpoint(t, address, port)
}

// createEndpoint makes the process the pod behind the Service. The API server's proxy accepts only
// the address of a pod.
func (r *rig) createEndpoint(t *testing.T, address string, port int32) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "lifeboat-console-0", Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: "ip-10-0-0-1.ec2.internal", ServiceAccountName: "lifeboat-console",
			Containers: []corev1.Container{{Name: "console", Image: "lifeboatd", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}}}},
		},
	}
	if err := r.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	if err := r.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	name, ready := "http", true
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "lifeboat-console-1", Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "lifeboat-console"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: target}},
		Ports:     []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	endpoints := &corev1.Endpoints{ //nolint:staticcheck // SA1019: the API server's proxy reads Endpoints
		ObjectMeta: metav1.ObjectMeta{Name: "lifeboat-console", Namespace: namespace},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // SA1019: as above
			Addresses: []corev1.EndpointAddress{{IP: address, TargetRef: target}}, Ports: []corev1.EndpointPort{{Name: name, Port: port}},
		}},
	}
	if err := r.client.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Create(t.Context(), endpoints); err != nil {
		t.Fatal(err)
	}
}

// outside returns an address of this machine that an endpoint can have: no loopback.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	need.Missing(t, "an address that is not loopback")
	return ""
}

// bindRole gives a person the chart's role to open the page.
func bindRole(t *testing.T, person string) {
	t.Helper()
	err := shared.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "console-" + person, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lifeboat-console-viewer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: person}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// person is a client of the API server for one person.
type person struct {
	host string
	http *http.Client
}

func (r *rig) asPerson(t *testing.T, name string) person {
	t.Helper()
	config := rest.CopyConfig(r.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return person{strings.TrimSuffix(config.Host, "/"), c}
}

func (p person) do(t *testing.T, method, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.host+proxyPath+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func get(t *testing.T, p person, method, path string) (code int, body string) {
	t.Helper()
	response := p.do(t, method, path)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// until200 requests a path until it is there: the API server learns of roles and endpoints later.
func until200(t *testing.T, p person, path string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		code, body := get(t, p, http.MethodGet, path)
		if code == http.StatusOK {
			return body
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q is answered with %d: %s", path, code, body)
		}
	}
}

// follow opens the server-sent events.
func follow(t *testing.T, p person) *bufio.Scanner {
	t.Helper()
	response := p.do(t, http.MethodGet, "events")
	t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("events: %s, %s", response.Status, kind)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<22)
	return lines
}

// awaitRow reads events until one has the row of an Interruption.
func awaitRow(t *testing.T, lines *bufio.Scanner, name string) {
	t.Helper()
	for lines.Scan() {
		text, isData := strings.CutPrefix(lines.Text(), "data: ")
		if isData && strings.Contains(text, fmt.Sprintf("%q", name)) {
			return
		}
	}
	t.Fatalf("the events ended before %s: %v", name, lines.Err())
}
