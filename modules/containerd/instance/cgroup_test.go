package main

import (
	"reflect"
	"testing"
)

func TestParseHierarchy(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		want       hierarchy
		ok         bool
	}{
		{"v1, two controllers", "36 35 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct", hierarchy{"/sys/fs/cgroup/cpu,cpuacct", []string{"cpu", "cpuacct"}}, true},
		{"v1 with a name", "36 35 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd", hierarchy{"/sys/fs/cgroup/systemd", []string{"none", "name=systemd"}}, true},
		{"v2", "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate", hierarchy{"/sys/fs/cgroup", nil}, true},
		{"another file system", "22 1 8:1 / / rw - ext4 /dev/sda1 rw", hierarchy{}, false},
		{"nonsense", "cgroup", hierarchy{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := parseHierarchy(tc.line)
			if ok != tc.ok || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("parseHierarchy() = %+v, %t; want %+v, %t", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	if got, want := levels("a/b/c"), []string{"a", "a/b", "a/b/c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("levels() = %q, want %q", got, want)
	}
}
