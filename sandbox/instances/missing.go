package instances

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// programs are the programs of this machine that an instance runs, with their Debian packages.
var programs = []struct{ name, pkg string }{{"runc", "runc"}, {"nft", "nftables"}}

// Missing returns an error that lists what this machine lacks for real instances; nil if nothing.
func Missing() error {
	if runtime.GOOS != "linux" {
		return errors.New("real instances need Linux: use simulated ones, which run anywhere")
	}
	var lacks, packages []string
	if os.Geteuid() != 0 {
		lacks = append(lacks, "root (run it with sudo -E)")
	}
	for _, p := range programs {
		if _, err := lookPath(p.name); err != nil {
			lacks, packages = append(lacks, p.name), append(packages, p.pkg)
		}
	}
	if !hasCgroups() {
		lacks = append(lacks, "cgroups, mounted at "+cgroupHome)
	}
	if len(lacks) == 0 {
		return nil
	}
	err := fmt.Errorf("real instances need %s", strings.Join(lacks, ", "))
	if len(packages) > 0 {
		err = fmt.Errorf("%w: on Debian and Ubuntu, apt-get install %s", err, strings.Join(packages, " "))
	}
	return err
}

// lookPath searches an instance's path, independent of the caller's $PATH.
func lookPath(name string) (string, error) {
	for _, dir := range strings.Split(searchPath, ":") {
		if path, err := exec.LookPath(dir + "/" + name); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
