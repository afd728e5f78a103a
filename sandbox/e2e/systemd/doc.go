// Package systemd runs the boot agent and its units under a real systemd. The units of the kubelet and
// of nodeup are those of kOps. The cloud is the emulator. The package holds only tests.
package systemd
