package karpenter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// stopGrace is longer than controller-runtime waits for controllers, 30 s. Some Karpenters need all of
// it.
const stopGrace = 45 * time.Second

// Options are the options of Karpenter. All are required except Queue.
type Options struct {
	Binary     string // from assets.EnsureKarpenter
	Kubeconfig string // of User, with the roles of RBAC
	LogFile    string // JSON lines
	Dir        string // its working directory

	Cluster  string // the cluster's name
	Endpoint string // the URL of its API server, as instances know it

	AWSEndpoint                  string // of all services
	Region                       string
	AccessKeyID, SecretAccessKey string

	// Queue is the name of the queue that it reads interruptions from; empty: it receives none.
	Queue string

	// LeaderElection lets it hold its lease, as its chart does. A process that is killed keeps
	// the next one waiting for 15 s.
	LeaderElection bool

	// MetricsPort and HealthPort are its ports, on all addresses: Karpenter has no option for the
	// address. FreePort finds one.
	MetricsPort, HealthPort string
}

// Start starts Karpenter. Its CRDs must exist. It is ready when /readyz on its HealthPort succeeds.
// ctx bounds only the start.
func Start(ctx context.Context, o Options) (*process.Process, error) {
	if o.Binary == "" || o.Kubeconfig == "" || o.LogFile == "" || o.AWSEndpoint == "" {
		return nil, errors.New("starting Karpenter: Binary, Kubeconfig, LogFile and AWSEndpoint are required")
	}
	return process.Start(ctx, process.Options{
		Name: "karpenter", Path: o.Binary, Dir: o.Dir, LogFile: o.LogFile, Env: environment(o), StopGrace: stopGrace,
	})
}

// environment is its whole configuration (Karpenter, reference/settings; AWS SDKs and Tools
// Reference Guide, environment variables). It inherits only paths, because Karpenter reads plain
// names such as CLUSTER_NAME.
func environment(o Options) []string {
	env := []string{
		"KUBECONFIG=" + o.Kubeconfig,
		"CLUSTER_NAME=" + o.Cluster,
		"CLUSTER_ENDPOINT=" + o.Endpoint,
		"AWS_ENDPOINT_URL=" + o.AWSEndpoint,
		"AWS_REGION=" + o.Region,
		"AWS_ACCESS_KEY_ID=" + o.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + o.SecretAccessKey,
		// It must not use a developer's own AWS account.
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=true",
		"DISABLE_LEADER_ELECTION=" + strconv.FormatBool(!o.LeaderElection),
		"LEADER_ELECTION_NAMESPACE=kube-system",
		// For versions before 1.1: there are no objects of v1beta1 to convert.
		"DISABLE_WEBHOOK=true", "SYSTEM_NAMESPACE=kube-system",
		"METRICS_PORT=" + o.MetricsPort,
		"HEALTH_PROBE_PORT=" + o.HealthPort,
	}
	if o.Queue != "" {
		env = append(env, "INTERRUPTION_QUEUE="+o.Queue)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// FreePort returns a port that no process listens on now.
func FreePort() (string, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return port, nil
}
