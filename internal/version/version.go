// Package version identifies the running build of Lifeboat.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is set by the linker:
//
//	go build -ldflags "-X github.com/lifeboat-dev/lifeboat/internal/version.version=v0.1.0"
var version string

// Info identifies a build.
type Info struct {
	// Version is the one that the linker set, else the module version that `go
	// install` recorded, else "dev".
	Version string `json:"version"`
	// Commit is the source commit, with "+dirty" if the working tree had changes;
	// empty if the toolchain recorded none.
	Commit string `json:"commit,omitempty"`
	// GoVersion is the version of the Go toolchain.
	GoVersion string `json:"goVersion"`
	// Platform is the target platform, for example linux/amd64.
	Platform string `json:"platform"`
}

// Get returns the running build.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(version, build)
}

// String returns the version with its commit, for example "v0.1.0 (3f1c9a5)".
func (i Info) String() string {
	if i.Commit == "" {
		return i.Version
	}
	return i.Version + " (" + i.Commit + ")"
}

func from(linked string, build *debug.BuildInfo) Info {
	recorded := build.Main.Version
	if recorded == "(devel)" {
		recorded = ""
	}
	return Info{
		Version:   cmp.Or(linked, recorded, "dev"),
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

// String returns the running build in one line.
func String() string { return Get().String() }
