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

	"github.com/lifeboat-dev/lifeboat/internal/boot"
	"github.com/lifeboat-dev/lifeboat/internal/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// BootConfig is what `lifeboatd agent boot` can be told.
type BootConfig struct {
	boot.Settings
	// File is a file with more settings; what the flags say goes first.
	File string
	// PullCommand is Settings.Pull as one line.
	PullCommand string
	// StateDir keeps the journal and the status; GateFile opens the gate.
	StateDir, GateFile string
	// Kubeconfig is the kubelet's, NodeName the node's name where it cannot be told
	// from metadata, Healthz where the kubelet says that it is well.
	Kubeconfig, NodeName, Healthz string
	// ImagesDir is where images are kept; its file system tells of progress.
	ImagesDir string
	// BootIDFile tells one boot from another.
	BootIDFile string
	// Development logs as text for people and not as JSON.
	Development bool
	// Verbosity is 0 for what changed and 1 for questions as well.
	Verbosity int
}

// bootFile is what the file of BootConfig may hold.
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

// complete adds what the file says.
func (c BootConfig) complete() (BootConfig, error) {
	var f bootFile
	if c.File != "" {
		text, err := os.ReadFile(c.File)
		if err != nil {
			return c, fmt.Errorf("reading --config: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &f); err != nil {
			return c, fmt.Errorf("reading --config %s: %w: it may hold images, prepare, hooks and wipePaths, which are lists, and pull, start, stop, active, wipe and nodeName", c.File, err)
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
		return fmt.Errorf("--absent-for %s is too short: a group may take that long to publish where a machine goes; write 10s or more", c.AbsentFor)
	case len(c.Pull) > 0 && !slices.ContainsFunc(c.Pull, func(w string) bool { return strings.Contains(w, "REF") }):
		return fmt.Errorf("--pull %q does not say where the image's name goes: write REF in its place", strings.Join(c.Pull, " "))
	case c.StateDir == "" || c.GateFile == "":
		return errors.New("no place for the journal or the gate: give --state-dir and --gate-file, or leave them out")
	case slices.Contains(c.Images, ""), slices.Contains(c.Prepare, ""), slices.Contains(c.Hooks, ""):
		return errors.New("an image, a command of --prepare or a hook has no name: leave it out")
	}
	return boot.CheckWipe(c.WipePaths)
}

// RunBoot runs the agent that brings a machine into service until ctx ends.
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
	return boot.New(c.options(cloud)).Run(logr.NewContext(ctx, logger))
}

func (c BootConfig) options(cloud aws.Config) boot.Options {
	names := metadata.NewClient(cloud)
	reader := boot.NodeReader{Kubeconfig: c.Kubeconfig, Healthz: c.Healthz, Names: func(ctx context.Context) []string {
		return c.nodeNames(ctx, names)
	}}
	return boot.Options{
		Settings: c.Settings,
		Metadata: func() boot.Metadata { return metadata.NewClient(cloud) },
		Connect:  connect,
		Node:     reader.Read, Run: boot.Exec, Remove: os.RemoveAll,
		State: boot.Dir(c.StateDir), Gate: boot.File(c.GateFile),
		BootID: func() (string, error) {
			text, err := os.ReadFile(c.BootIDFile)
			return strings.TrimSpace(string(text)), err
		},
		Used: boot.DiskUsed(c.ImagesDir), Sync: unix.Sync,
	}
}

// connect makes a connection to Auto Scaling with credentials of now. The region is the
// instance's, unless the SDK is told another.
func connect(ctx context.Context) (boot.AutoScaling, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return boot.AutoScaling{}, fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	if config.Region == "" {
		region, found, err := metadata.NewClient(config).Get(ctx, "placement/region")
		if err != nil || !found {
			return boot.AutoScaling{}, fmt.Errorf("finding the region: %w", errors.Join(err, errors.New("set AWS_REGION where instance metadata does not tell it")))
		}
		config.Region = region
	}
	return boot.NewAutoScaling(config), nil
}

// nodeNames are those that the machine's node may have: on EC2 kubelets mostly register
// with the private DNS name, or with the instance's id.
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

// BootStatus tells what the agent of this machine does and what it waits for.
func BootStatus(stateDir string) (string, error) {
	file := filepath.Join(stateDir, boot.StatusFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w: has the agent run? see `systemctl status lifeboat-boot`", file, err)
	}
	status, err := boot.ReadStatus(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return status.Text(time.Now()), nil
}
