package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// BootConfig is the configuration of `lifeboatd agent boot`.
type BootConfig struct {
	bootagent.Settings
	// File is a file with more settings; flags override it.
	File string
	// PullCommand is Settings.Pull as one line.
	PullCommand string
	// StateDir holds the journal and the status; GateFile is created to open
	// the gate.
	StateDir, GateFile string
	// Kubeconfig is the kubelet's. NodeName is the node's name if metadata
	// cannot tell it. Healthz is the kubelet's health endpoint.
	Kubeconfig, NodeName, Healthz string
	// ImagesDir is where images are stored; its disk usage shows pull progress.
	ImagesDir string
	// BootIDFile identifies the current boot.
	BootIDFile string
	// Development logs text instead of JSON.
	Development bool
	// Verbosity 0 logs changes, 1 also requests.
	Verbosity int
}

// bootFile is the content of BootConfig.File.
type bootFile struct {
	Images    []string `json:"images"`
	Prepare   []string `json:"prepare"`
	Hooks     []string `json:"hooks"`
	WipePaths []string `json:"wipePaths"`
	Pull      string   `json:"pull"`
	Start     string   `json:"start"`
	Stop      string   `json:"stop"`
	Active    string   `json:"active"`
	Wipe      string   `json:"wipe"`
	NodeName  string   `json:"nodeName"`
}

// complete merges the settings of the file.
func (c BootConfig) complete() (BootConfig, error) {
	var f bootFile
	if c.File != "" {
		text, err := os.ReadFile(c.File)
		if err != nil {
			return c, fmt.Errorf("reading --config: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &f); err != nil {
			return c, fmt.Errorf("reading --config %s: %w: valid keys are the lists images, prepare, hooks and wipePaths, and pull, start, stop, active, wipe and nodeName", c.File, err)
		}
	}
	c.Images, c.Prepare = slices.Concat(c.Images, f.Images), slices.Concat(c.Prepare, f.Prepare)
	c.WipePaths = slices.Concat(c.WipePaths, f.WipePaths)
	if len(c.Hooks) == 0 {
		c.Hooks = f.Hooks
	}
	c.Start, c.Stop, c.Active = cmp.Or(c.Start, f.Start), cmp.Or(c.Stop, f.Stop), cmp.Or(c.Active, f.Active)
	c.Wipe, c.NodeName = cmp.Or(c.Wipe, f.Wipe), cmp.Or(c.NodeName, f.NodeName)
	c.Pull = strings.Fields(cmp.Or(c.PullCommand, f.Pull))
	return c, c.checkBoot()
}

func (c BootConfig) checkBoot() error {
	switch {
	case c.Interval < time.Second || c.Interval > time.Minute:
		return fmt.Errorf("--poll-interval %s is out of range: write a duration from 1s to 1m", c.Interval)
	case c.AbsentFor < 10*time.Second:
		return fmt.Errorf("--absent-for %s is too short: a group may need that long to publish an instance's target state; write 10s or more", c.AbsentFor)
	case len(c.Pull) > 0 && !slices.ContainsFunc(c.Pull, func(w string) bool { return strings.Contains(w, "REF") }):
		return fmt.Errorf("--pull %q has no placeholder for the image name: add REF", strings.Join(c.Pull, " "))
	case c.StateDir == "" || c.GateFile == "":
		return errors.New("no path for the journal or the gate: set --state-dir and --gate-file, or omit both flags")
	case slices.Contains(c.Images, ""), slices.Contains(c.Prepare, ""), slices.Contains(c.Hooks, ""):
		return errors.New("an image, a --prepare command or a hook is empty: remove it")
	}
	return bootagent.CheckWipe(c.WipePaths)
}

// RunBoot runs the boot agent, which prepares a machine for service, until ctx
// ends.
func RunBoot(ctx context.Context, c BootConfig) error {
	logger := newLogger(c.Development, c.Verbosity)
	klog.SetLogger(logger.WithName("client-go"))
	c, err := c.complete()
	if err != nil {
		return err
	}
	cloud, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	logger.Info("started", "version", version.String(), "state", c.StateDir, "gate", c.GateFile)
	return bootagent.New(c.options(cloud)).Run(logr.NewContext(ctx, logger))
}

func (c BootConfig) options(cloud aws.Config) bootagent.Options {
	names := metadata.NewClient(cloud)
	reader := bootagent.NodeReader{Kubeconfig: c.Kubeconfig, Healthz: c.Healthz, Names: func(ctx context.Context) []string {
		return c.nodeNames(ctx, names)
	}}
	return bootagent.Options{
		Settings: c.Settings,
		Metadata: func() bootagent.Metadata { return metadata.NewClient(cloud) },
		Connect:  connect,
		Node:     reader.Read, Run: bootagent.Exec, Remove: os.RemoveAll,
		State: bootagent.Dir(c.StateDir), Gate: bootagent.File(c.GateFile),
		BootID: func() (string, error) {
			text, err := os.ReadFile(c.BootIDFile)
			return strings.TrimSpace(string(text)), err
		},
		Used: bootagent.DiskUsed(c.ImagesDir), Sync: unix.Sync,
	}
}

// connect creates an Auto Scaling client with current credentials. The region
// is the instance's unless the SDK is configured with one.
func connect(ctx context.Context) (bootagent.AutoScaling, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithAppID("lifeboat-boot"))
	if err != nil {
		return bootagent.AutoScaling{}, fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	if config.Region == "" {
		region, found, err := metadata.NewClient(config).Get(ctx, "placement/region")
		if err != nil || !found {
			return bootagent.AutoScaling{}, fmt.Errorf("finding the region: %w", errors.Join(err, errors.New("set AWS_REGION if instance metadata does not contain it")))
		}
		config.Region = region
	}
	return bootagent.NewAutoScaling(config), nil
}

// nodeNames are the possible names of the machine's node: on EC2 a kubelet
// usually registers with the private DNS name or the instance id.
func (c BootConfig) nodeNames(ctx context.Context, from *metadata.Client) []string {
	if c.NodeName != "" {
		return []string{c.NodeName}
	}
	var out []string
	for _, path := range []string{"local-hostname", "instance-id"} {
		if text, found, err := from.Get(ctx, path); err == nil && found {
			out = append(out, strings.Fields(text)...)
		}
	}
	if host, err := os.Hostname(); err == nil && !slices.Contains(out, strings.ToLower(host)) {
		out = append(out, strings.ToLower(host))
	}
	return out
}

// BootStatus describes what the boot agent of this machine does and waits for.
func BootStatus(stateDir string) (string, error) {
	file := filepath.Join(stateDir, bootagent.StatusFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w: check that the agent runs: `systemctl status lifeboat-boot`", file, err)
	}
	status, err := bootagent.ReadStatus(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return status.Text(time.Now()), nil
}
