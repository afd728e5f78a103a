//go:build e2e && linux

package systemd

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/systemd"
)

// The units of a kOps node. Names, dependencies and restarts are those of kOps
// (nodeup/pkg/model/kubelet.go, buildSystemdService; nodeup/pkg/model/kops_configuration.go).
const (
	kubeletUnit = `[Unit]
Description=Kubernetes Kubelet Server
After=containerd.service
[Service]
EnvironmentFile=/etc/sysconfig/kubelet
ExecStart=/usr/local/bin/kubelet "$DAEMON_ARGS"
Restart=always
RestartSec=2s
StartLimitInterval=0
KillMode=process
User=root
[Install]
WantedBy=multi-user.target
`
	nodeupUnit = `[Unit]
Description=Run kOps bootstrap (nodeup)
[Service]
EnvironmentFile=/etc/sysconfig/kops-configuration
EnvironmentFile=/etc/environment
ExecStart=/opt/kops/bin/nodeup --conf=/opt/kops/conf/kube_env.yaml --v=8
Type=oneshot
[Install]
WantedBy=multi-user.target
`
	// nodeup starts the kubelet although the instance warms, which the gate must prevent. kOps' own
	// reads the state first, and can be wrong (kOps issue 16582).
	nodeup = `#!/bin/sh
systemctl daemon-reload
systemctl enable kubelet.service
systemctl start kubelet.service
`
)

const kubeletPath = "/kubelet"

// TestMain is also the substitute for the kubelet, on a machine.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubelet" {
		fmt.Fprintln(os.Stderr, runKubelet())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runKubelet records its start, and is healthy once its node is Ready.
func runKubelet() error {
	f, err := os.OpenFile(starts, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("started\n"); err != nil {
		return err
	}
	text, err := os.ReadFile(starts)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s%s?start=%d", systemd.Gateway, kubeletPath, strings.Count(string(text), "\n"))
	client := &http.Client{Timeout: 2 * time.Second}
	for ; ; time.Sleep(200 * time.Millisecond) {
		reply, err := client.Get(url)
		if err != nil {
			continue
		}
		reply.Body.Close()
		if reply.StatusCode == http.StatusOK {
			return http.ListenAndServe("127.0.0.1:10248", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}
	}
}
