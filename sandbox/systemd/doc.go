// Package systemd boots systemd as process 1 of a machine made of namespaces. The machine has the
// programs of the host (/usr, read-only). Its own /etc and /var are on a disk that survives a power
// off. systemd-networkd configures its only network interface. It uses cgroup v2 without controllers,
// so the host may also use cgroup v1.
//
// There is no udev, no logind and no D-Bus. The kernel is the host's.
package systemd
