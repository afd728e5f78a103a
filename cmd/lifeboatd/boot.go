package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
	"github.com/lifeboat-dev/lifeboat/internal/boot"
)

const bootLong = `Sees a machine of an Auto Scaling group safely into service, through its warm pool
and back. It runs on the machine itself and not in a pod, for as long as the machine
is up: the kubelet is started by it, and by nothing else.

Instance metadata says where the group wants the machine. On the way into the warm
pool images are pulled and --prepare commands are run, and the kubelet stays off; on
the way into service the gate is opened, the kubelet is started, and the launch hook
is answered once the node is Ready. See docs/guides/warm-pools.md.`

const bootExample = `  # the unit that comes with it, on a machine whose kubelet.service is not enabled
  lifeboatd agent boot --image registry.k8s.io/pause:3.10 --config /etc/lifeboat/boot.yaml

  # a machine whose set-up must be whole before it joins
  lifeboatd agent boot --prepare '/opt/bootstrap.sh --no-kubelet' --start 'systemctl start containerd kubelet'

  # what does this machine wait for?
  lifeboatd agent boot --status`

func bootAgent() *cobra.Command {
	var (
		c      app.BootConfig
		answer bool
		status bool
	)
	cmd := &cobra.Command{
		Use: "boot", Short: "Sees a machine of an Auto Scaling group into service; runs on the machine itself",
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
	f.BoolVar(&status, "status", false, "say what the agent of this machine does and waits for, and end")
	f.StringVar(&c.File, "config", "", "YAML file with images, prepare, hooks, wipePaths (lists), pull, start, stop, active, wipe, nodeName; flags go first, lists add up")
	f.StringVar(&c.StateDir, "state-dir", "/var/lib/lifeboat", "directory of the journal and the status; on a disk that outlives a stop")
	f.StringVar(&c.GateFile, "gate-file", "/run/lifeboat/gate", "file that is there while the kubelet may run; on a file system that ends with the boot")
	f.StringVar(&c.BootIDFile, "boot-id-file", "/proc/sys/kernel/random/boot_id", "file that tells one boot from another")
	f.StringArrayVar(&c.Images, "image", nil, "image to pull while the machine warms; may be repeated")
	f.StringVar(&c.PullCommand, "pull", "", "command that pulls an image, whose name stands for REF (default: "+boot.DefaultPull+")")
	f.IntVar(&c.Parallel, "parallel", 2, "how many images are pulled at once")
	f.StringVar(&c.ImagesDir, "images-dir", "/var/lib/containerd", "directory whose file system fills as images are pulled: that is progress")
	f.StringArrayVar(&c.Prepare, "prepare", nil, "command that has to succeed before the machine is warm or serves; it may be run again; may be repeated, run in this order")
	f.StringVar(&c.Start, "start", "", "command that starts the kubelet (default: "+boot.DefaultStart+")")
	f.StringVar(&c.Stop, "stop", "", "command that stops it (default: "+boot.DefaultStop+")")
	f.StringVar(&c.Active, "active", "", "command that succeeds while it runs (default: "+boot.DefaultActive+")")
	f.StringVar(&c.Wipe, "wipe", "", "command that removes what belongs to one life in service, before the machine goes back to the warm pool")
	f.StringArrayVar(&c.WipePaths, "wipe-path", nil, "file or directory to remove then; may be repeated")
	f.StringSliceVar(&c.Hooks, "hooks", nil, "names of the lifecycle hooks to answer, * for any text; names in full need no autoscaling:DescribeLifecycleHooks (default: lifeboat-*)")
	f.BoolVar(&answer, "answer", true, "answer lifecycle hooks; false leaves that to the controller, and needs no permission")
	f.BoolVar(&c.Abandon, "abandon-on-failure", false, "abandon the launch when a --prepare command has failed --tries times; the group terminates the machine and launches another")
	f.IntVar(&c.Tries, "tries", 5, "after how many an image is done without, and a --prepare command has failed for good")
	f.StringVar(&c.Kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "the kubelet's kubeconfig; where there is no such file, the kubelet's health check is asked")
	f.StringVar(&c.NodeName, "node-name", "", "name of the node (default: the private DNS name, the instance id or the host name, whichever is there)")
	f.StringVar(&c.Healthz, "kubelet-healthz", "http://127.0.0.1:10248/healthz", "the kubelet's health check")
	f.DurationVar(&c.Interval, "poll-interval", 7*time.Second, "how often instance metadata is read")
	f.DurationVar(&c.AbsentFor, "absent-for", 2*time.Minute, "for how long metadata may say nothing before it is found out whether the machine is in a group at all")
	f.DurationVar(&c.Patience, "patience", 30*time.Minute, "for how long hooks are extended on one way, in all")
	f.DurationVar(&c.Stall, "stall", 10*time.Minute, "after what time without progress they are not")
	f.BoolVar(&c.Development, "text-logs", false, "log as text and not as JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "0: what changed; 1: questions as well")
	return cmd
}
