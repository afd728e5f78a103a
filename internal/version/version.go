// Package version says which build of Lifeboat is running.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is stamped in by the linker:
//
//	go build -ldflags "-X github.com/lifeboat-dev/lifeboat/internal/version.version=v0.1.0"
var version string

// Info is which build is running.
type Info struct {
	// Version is the one stamped in, else the module version that `go install`
	// recorded, else "dev".
	Version string `json:"version"`
	// Commit is the commit it was built from, with "+dirty" where the working
	// tree had changes; empty where the toolchain recorded none.
	Commit string `json:"commit,omitempty"`
	// GoVersion is the toolchain that built it.
	GoVersion string `json:"goVersion"`
	// Platform is what it was built for, such as linux/amd64.
	Platform string `json:"platform"`
}

// Get returns which build is running.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(version, build)
}

// String is the version with its commit, such as "v0.1.0 (3f1c9a5)".
func (i Info) String() string {
	if i.Commit == "" {
		return i.Version
	}
	return i.Version + " (" + i.Commit + ")"
}

func from(stamped string, build *debug.BuildInfo) Info {
	recorded := build.Main.Version
	if recorded == "(devel)" {
		recorded = ""
	}
	return Info{
		Version:   cmp.Or(stamped, recorded, "dev"),
		Commit:    commit(build.Settings),
		GoVersion: cmp.Or(build.GoVersion, runtime.Version()),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func commit(settings []debug.BuildSetting) string {
	var revision, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + dirty
}

// String is which build is running, in one line.
func String() string { return Get().String() }
