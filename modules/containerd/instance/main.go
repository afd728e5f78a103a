// Command instance is what runs as process 1 of a sandbox's real instance: it makes
// the namespaces that it was started in into a machine, with a file system, cgroups
// and programs of its own, and reaps what dies in it.
//
// It knows nothing of clusters: all that it does is in the configuration that it
// is given. Whoever starts it has it in new pid, mount, network, UTS and IPC
// namespaces already, sets up the network from outside, and closes its standard
// input when that is done. SIGPWR is its power button: the machine shuts down, as
// systemd-logind does it, and the program ends with status 0. Its power is cut by SIGKILL.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

const usage = "instance: use `instance boot CONFIG`, as process 1 of new namespaces\n"

// config says what machine to be.
type config struct {
	Hostname string `json:"hostname"`
	// Cgroup is its directory below the root of each hierarchy.
	Cgroup string `json:"cgroup"`
	// Root is an empty directory, on which its file system is built.
	Root string `json:"root"`
	// Binds are directories of the machine outside that it sees.
	Binds []bind `json:"binds"`
	// Covers lie over files and directories of its own.
	Covers []cover `json:"covers"`
	// Env is the environment of its programs.
	Env []string `json:"env"`
	// SystemBus is the path of the socket with the stand-in for systemd-logind, and
	// InhibitDelayMaxSec is logind.conf(5)'s: how long a shutdown waits for those who delay
	// it.
	SystemBus          string `json:"systemBus"`
	InhibitDelayMaxSec int    `json:"inhibitDelayMaxSec"`
	// Containerd is started first. Then Images, archives in Binds, are imported
	// through its socket, and then Programs are started. A program that ends is
	// started again.
	Containerd program   `json:"containerd"`
	Socket     string    `json:"socket"`
	Images     []string  `json:"images"`
	Programs   []program `json:"programs"`
}

type bind struct {
	From     string `json:"from"`
	To       string `json:"to"`
	ReadOnly bool   `json:"readOnly"`
}

// cover lies over To: a file with Text, or a directory with Files by their paths.
type cover struct {
	To    string            `json:"to"`
	Text  string            `json:"text"`
	Files map[string]string `json:"files"`
}

type program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "instance:", err)
		os.Exit(1)
	}
}

// run is one of the two stages. Between them the program executes itself: only
// so do all of its threads come into the new cgroup namespace.
func run(stage, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("this is process %d: it must be the first of a new pid namespace", os.Getpid())
	}
	all, err := hierarchies()
	if err != nil {
		return fmt.Errorf("reading the cgroup hierarchies: %w", err)
	}
	switch stage {
	case "boot":
		if err := enterCgroups(all, c.Cgroup); err != nil {
			return fmt.Errorf("entering its cgroups: %w", err)
		}
		return again(file)
	case "init":
		if err := leaf(all, c.Cgroup); err != nil {
			return fmt.Errorf("entering its cgroups: %w", err)
		}
		if err := build(c, all); err != nil {
			return fmt.Errorf("building its file system: %w", err)
		}
		// The network is there when this ends.
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return fmt.Errorf("waiting for the network: %w", err)
		}
		return live(c)
	default:
		return fmt.Errorf("there is no stage %q", stage)
	}
}
