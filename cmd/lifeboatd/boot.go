package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
)

const bootLong = `Bring a machine of an Auto Scaling group into service, also through its warm pool.
The agent runs on the machine itself, not in a pod, as long as the machine is up.
Only the agent starts the kubelet.

Instance metadata contains the lifecycle state that the group wants. On the way
into the warm pool the agent pulls images and runs the --prepare commands, and the
kubelet stays off. On the way into service the agent creates the gate file, starts
the kubelet, and answers the launch hook when the node is Ready. See
docs/guides/warm-pools.md.`

const bootExample = `  # Command of the included systemd unit, on a machine whose kubelet.service is not enabled
  lifeboatd agent boot --image registry.k8s.io/pause:3.10 --config /etc/lifeboat/boot.yaml

  # Finish the set-up of the machine before its node joins
  lifeboatd agent boot --prepare '/opt/bootstrap.sh --no-kubelet' --start 'systemctl start containerd kubelet'

  # Show what this machine waits for
  lifeboatd agent boot --status`

func bootAgent() *cobra.Command {
	var (
		c      app.BootConfig
		answer bool
		status bool
	)
	cmd := &cobra.Command{
		Use: "boot", Short: "Bring a machine of an Auto Scaling group into service",
		Long: bootLong, Example: bootExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if status {
				text, err := app.BootStatus(c.StateDir)
				fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			c.NoAnswer = !answer
			return app.RunBoot(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&status, "status", false, "print what the agent of this machine does and waits for, and exit")
	f.StringVar(&c.File, "config", "", "YAML file with images, prepare, hooks, wipePaths (lists), pull, start, stop, active, wipe, nodeName; flags override it, lists are combined")
	f.StringVar(&c.StateDir, "state-dir", "/var/lib/lifeboat", "directory of the journal and the status, on a disk that survives a stop of the instance")
	f.StringVar(&c.GateFile, "gate-file", "/run/lifeboat/gate", "file that exists while the kubelet may run, on a file system that a reboot clears")
	f.StringVar(&c.BootIDFile, "boot-id-file", "/proc/sys/kernel/random/boot_id", "file with the id of the current boot")
	f.StringArrayVar(&c.Images, "image", nil, "image to pull while the machine warms up; repeatable")
	f.StringVar(&c.PullCommand, "pull", "", "command that pulls an image; REF is replaced by the image's name (default: "+bootagent.DefaultPull+")")
	f.IntVar(&c.Parallel, "parallel", 2, "number of images to pull in parallel")
	f.StringVar(&c.ImagesDir, "images-dir", "/var/lib/containerd", "directory whose growth shows that an image pull makes progress")
	f.StringArrayVar(&c.Prepare, "prepare", nil, "command that must succeed before the machine is warm or in service; it must be idempotent; repeatable, run in this order")
	f.StringVar(&c.Start, "start", "", "command that starts the kubelet (default: "+bootagent.DefaultStart+")")
	f.StringVar(&c.Stop, "stop", "", "command that stops the kubelet (default: "+bootagent.DefaultStop+")")
	f.StringVar(&c.Active, "active", "", "command that succeeds while the kubelet runs (default: "+bootagent.DefaultActive+")")
	f.StringVar(&c.Wipe, "wipe", "", "command that removes the node's state before the machine returns to the warm pool")
	f.StringArrayVar(&c.WipePaths, "wipe-path", nil, "file or directory to remove before the machine returns to the warm pool; repeatable")
	f.StringSliceVar(&c.Hooks, "hooks", nil, "names of the lifecycle hooks to answer; * matches any text; names without * need no autoscaling:DescribeLifecycleHooks (default: lifeboat-*)")
	f.BoolVar(&answer, "answer", true, "answer lifecycle hooks; false leaves that to the controller and needs no permission")
	f.BoolVar(&c.Abandon, "abandon-on-failure", false, "abandon the launch when a --prepare command has failed --tries times; the group terminates the machine and launches another")
	f.IntVar(&c.Tries, "tries", 5, "number of tries to pull an image or to run a --prepare command; after that the image is skipped, and the command has failed")
	f.StringVar(&c.Kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "the kubelet's kubeconfig; if the file does not exist, the agent uses the kubelet's health check")
	f.StringVar(&c.NodeName, "node-name", "", "name of the node (default: the existing node that is named after the private DNS name, the instance id or the host name)")
	f.StringVar(&c.Healthz, "kubelet-healthz", "http://127.0.0.1:10248/healthz", "URL of the kubelet's health check")
	f.DurationVar(&c.Interval, "poll-interval", 7*time.Second, "interval between reads of instance metadata")
	f.DurationVar(&c.AbsentFor, "absent-for", 2*time.Minute, "time without a lifecycle state in the metadata after which the agent checks whether the machine belongs to a group")
	f.DurationVar(&c.Patience, "patience", 30*time.Minute, "maximum total time for which the agent extends hooks, on the way into the pool or into service")
	f.DurationVar(&c.Stall, "stall", 10*time.Minute, "time without progress after which the agent stops extending hooks")
	f.BoolVar(&c.Development, "text-logs", false, "log as text instead of JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "log level; 0: changes; 1: also requests")
	return cmd
}
