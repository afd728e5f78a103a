package instances

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// watchesEach is the number of inotify instances (inotify(7)) that an instance uses: six by its
// kubelet, two by containerd, one by kube-proxy. Linux allows a user 128 by default, and containerd
// does not start without one.
const watchesEach = 9

// room returns an error if this machine has no room for that many more instances.
func room(instances int) error {
	var open []int
	defer func() {
		for _, fd := range open {
			unix.Close(fd)
		}
	}()
	for range instances * watchesEach {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			const setting = "fs.inotify.max_user_instances"
			limit, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_instances") // only for the message
			return fmt.Errorf("this machine has no room for another: of %s inotify instances it takes %d (%w): sysctl -w %s=1024",
				strings.TrimSpace(string(limit)), watchesEach, err, setting)
		}
		open = append(open, fd)
	}
	return nil
}
