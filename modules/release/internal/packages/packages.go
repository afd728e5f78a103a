// Package packages makes the deb and rpm packages of the boot agent.
package packages

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// Formats are the packages' formats, which are also the ends of their names.
var Formats = []string{"deb", "rpm"}

// File is one file of a package.
type File struct {
	Source string // on this machine
	Path   string // where it is installed
	Mode   fs.FileMode
}

const description = `Lifeboat's agent at boot.
It answers the lifecycle hooks of an Auto Scaling group and starts the kubelet
when the machine goes into service. The units are not enabled at installation.`

// Pack returns the package. Its files have the time of the commit.
func Pack(s source.Source, t program.Target, format string, content []File) (name string, data []byte, err error) {
	info := &nfpm.Info{
		Name: "lifeboat-boot", Arch: t.Arch, Platform: t.OS, Version: s.Version, Section: "admin", Priority: "optional",
		Maintainer: "The Lifeboat authors <noreply@lifeboat.dev>", Vendor: "Lifeboat", Homepage: source.Repository,
		License: "Apache-2.0", Description: description, MTime: s.Time,
	}
	info.RPM.BuildHost = "lifeboat.dev"
	info.RPM.Group = "System Environment/Daemons"
	info.RPM.Summary = "Lifeboat's agent at boot"
	for _, f := range content {
		info.Contents = append(info.Contents, &files.Content{
			Source: f.Source, Destination: f.Path,
			FileInfo: &files.ContentFileInfo{Mode: f.Mode, Owner: "root", Group: "root", MTime: s.Time},
		})
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", nil, err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", nil, fmt.Errorf("preparing the %s: %w", format, err)
	}
	var out bytes.Buffer
	name = packager.ConventionalFileName(info)
	if err := packager.Package(info, &out); err != nil {
		return "", nil, fmt.Errorf("packing the %s: %w", format, err)
	}
	return name, out.Bytes(), nil
}
