package bootagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// nodeTime is the time limit for reading the node.
	nodeTime = 10 * time.Second
	// maxNode is larger than any Node.
	maxNode = 4 << 20
)

// NodeReader reads the machine's own Node with the kubelet's kubeconfig, which permits only that
// (Kubernetes documentation, "Using Node Authorization"). Without that file it uses the
// kubelet's health check.
type NodeReader struct {
	// Kubeconfig is the path of the kubelet's kubeconfig.
	Kubeconfig string
	// Names are possible names of the node, the most likely first.
	Names func(ctx context.Context) []string
	// Healthz is the URL of the kubelet's health check; empty: it is not used.
	Healthz string
}

// Read reads the node of an instance.
func (r NodeReader) Read(ctx context.Context, instance, known string) Node {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	if _, err := os.Stat(r.Kubeconfig); r.Kubeconfig == "" || errors.Is(err, fs.ErrNotExist) {
		return r.askKubelet(ctx)
	}
	// It is read each time: the kubelet renews the certificates that it refers to.
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return Node{Trouble: "reading the kubelet's kubeconfig: " + err.Error()}
	}
	config.Timeout = nodeTime
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Node{Trouble: fmt.Sprintf("reaching %s: %v", config.Host, err)}
	}
	defer client.CloseIdleConnections()
	names := []string{known}
	if known == "" {
		names = r.Names(ctx)
	}
	var troubles []string
	for _, name := range names {
		node, found, err := getNode(ctx, client, config.Host, name)
		switch {
		case err != nil:
			troubles = append(troubles, err.Error())
		case found && isInstance(node, instance):
			return readNode(node)
		}
	}
	return Node{Trouble: strings.Join(troubles, "; ")}
}

// isInstance reports whether a node may be that of an instance: another instance may have had
// its name before. A node that has just registered has no provider id.
func isInstance(node *corev1.Node, instance string) bool {
	id := node.Spec.ProviderID
	return id == "" || strings.HasSuffix(id, "/"+instance) || id == instance
}

func readNode(node *corev1.Node) Node {
	out := Node{Name: node.Name, Deleting: node.DeletionTimestamp != nil}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready, out.Heartbeat = c.Status == corev1.ConditionTrue, c.LastHeartbeatTime.Time
		}
	}
	return out
}

func getNode(ctx context.Context, client *http.Client, host, name string) (node *corev1.Node, found bool, err error) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	status, body, err := fetch(ctx, client, strings.TrimSuffix(host, "/")+"/api/v1/nodes/"+url.PathEscape(name))
	switch {
	case err != nil:
		return nil, false, err
	case status == http.StatusNotFound:
		return nil, false, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, false, fmt.Errorf("the API server answers %d for node %s: is that the node's name? (--node-name)", status, name)
	case status != http.StatusOK:
		return nil, false, fmt.Errorf("the API server answers %d for node %s", status, name)
	}
	node = &corev1.Node{}
	if err := json.Unmarshal(body, node); err != nil {
		return nil, false, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, true, nil
}

// askKubelet calls the kubelet's own health check.
func (r NodeReader) askKubelet(ctx context.Context) Node {
	if r.Healthz == "" {
		return Node{Trouble: "there is no kubeconfig " + r.Kubeconfig + " yet"}
	}
	status, _, err := fetch(ctx, http.DefaultClient, r.Healthz)
	return Node{Healthz: true, Ready: err == nil && status == http.StatusOK}
}

func fetch(ctx context.Context, client *http.Client, from string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	body, err = io.ReadAll(io.LimitReader(reply.Body, maxNode))
	return reply.StatusCode, body, err
}
