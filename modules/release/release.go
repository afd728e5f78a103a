package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/archive"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/chart"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/image"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/listing"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/packages"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

// cliTargets are the platforms of the CLI.
var cliTargets = []program.Target{
	{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"},
}

const (
	cliPackage  = "./cmd/lifeboat"
	chartLayout = "chart" // the directory of the chart in the output
)

// maker writes the files of one release.
type maker struct {
	source.Source
	dir      string
	licence  []byte
	programs []evidence.Program
	images   []evidence.Subject
	cli      []listing.Archive
}

func (o options) release(ctx context.Context) error {
	s, err := o.source(ctx)
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(s.Root, "LICENSE"))
	if err != nil {
		return err
	}
	// A file of an earlier run would get into the list of checksums.
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	m := &maker{Source: s, dir: o.out, licence: licence}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"image", m.image},
		{"chart", m.chart},
		{"CLI", m.commandLine},
		{"boot agent", m.bootAgent},
		{"sandbox", func(ctx context.Context) error { return m.sandbox(ctx, o.sandbox) }},
		{"lists for package managers", m.lists},
		{"evidence", m.evidence},
	} {
		fmt.Fprintln(os.Stderr, "making:", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("making the %s: %w", step.name, err)
		}
	}
	return nil
}

func (m *maker) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(m.dir, name), data, 0o644)
}

// writeLayout writes the tar file of a layout that is in a directory of the output.
func (m *maker) writeLayout(dir, name string) error {
	files, err := archive.ReadDir(filepath.Join(m.dir, dir), "", nil)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].Program = false
	}
	var tar bytes.Buffer
	if err := archive.Tar(&tar, files, m.Time); err != nil {
		return err
	}
	return m.write(name, tar.Bytes())
}

func (m *maker) image(ctx context.Context) error {
	digest, err := makeImage(ctx, m.Source, filepath.Join(m.dir, imageLayout))
	if err != nil {
		return err
	}
	m.images = append(m.images, evidence.NewSubject("lifeboatd:"+m.Version, digest.Hex))
	return m.writeLayout(imageLayout, "lifeboatd_"+m.Version+"_image.tar")
}

func (m *maker) chart(context.Context) error {
	p, err := packChart(m.Source)
	if err != nil {
		return err
	}
	artifact, err := p.Artifact(m.Source)
	if err != nil {
		return err
	}
	digest, err := artifact.Digest()
	if err != nil {
		return err
	}
	m.images = append(m.images, evidence.NewSubject("charts/lifeboat:"+m.Version, digest.Hex))
	if err := image.WriteLayout(filepath.Join(m.dir, chartLayout), image.Tagged{Tag: m.Version, Ref: artifact}); err != nil {
		return err
	}
	if err := m.write("lifeboat-"+m.Version+".tgz", p.Tgz); err != nil {
		return err
	}
	return m.writeLayout(chartLayout, "lifeboat_"+m.Version+"_chart.tar")
}

// packChart packs charts/lifeboat without what .helmignore names.
func packChart(s source.Source) (chart.Package, error) {
	files, err := archive.ReadDir(filepath.Join(s.Root, "charts/lifeboat"), "lifeboat", func(path string) bool {
		return !strings.HasSuffix(path, ".go") && !strings.HasPrefix(path, "examples/")
	})
	if err != nil {
		return chart.Package{}, err
	}
	return chart.Pack(s, files)
}

// compile builds a program and remembers it for the list of modules.
func (m *maker) compile(ctx context.Context, dir, pkg string, t program.Target) ([]byte, error) {
	data, err := build(ctx, m.Source, dir, pkg, t)
	m.programs = append(m.programs, evidence.Program{Name: filepath.Base(pkg) + "-" + t.OS + "-" + t.Arch, Data: data})
	return data, err
}

func (m *maker) commandLine(ctx context.Context) error {
	for _, t := range cliTargets {
		cli, err := m.compile(ctx, ".", cliPackage, t)
		if err != nil {
			return err
		}
		licences, err := program.Licences(ctx, m.Source, ".", t, cliPackage)
		if err != nil {
			return err
		}
		// kubectl and krew look for the second name, and krew unpacks no links.
		for _, name := range []string{"lifeboat", "kubectl-lifeboat"} {
			file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", name, m.Version, t.OS, t.Arch)
			data, err := m.archive(file, []archive.File{{Path: name, Data: cli, Program: true}}, licences)
			if err != nil {
				return err
			}
			m.cli = append(m.cli, listing.NewArchive(name, file, t, data))
		}
	}
	return nil
}

// archive writes an archive with the licences, and returns it.
func (m *maker) archive(name string, files []archive.File, licences []byte) ([]byte, error) {
	files = append(files, archive.File{Path: "LICENSE", Data: m.licence}, archive.File{Path: "THIRD-PARTY-LICENSES", Data: licences})
	data, err := archive.TarGz(files, m.Time)
	if err != nil {
		return nil, err
	}
	return data, m.write(name, data)
}

// units are the boot agent's, and where packages install them. The kubelet's drop-in is not in
// effect: until the agent is enabled, it would keep the kubelet from starting.
var units = map[string]string{
	"lifeboat-boot.service":              "/usr/lib/systemd/system/lifeboat-boot.service",
	"lifeboat-gate.service":              "/usr/lib/systemd/system/lifeboat-gate.service",
	"kubelet.service.d/05-lifeboat.conf": "/usr/share/lifeboat-boot/05-lifeboat.conf",
}

func (m *maker) bootAgent(ctx context.Context) error {
	for _, t := range imageTargets {
		daemon, err := m.compile(ctx, ".", daemonPackage, t)
		if err != nil {
			return err
		}
		licences, err := program.Licences(ctx, m.Source, ".", t, daemonPackage)
		if err != nil {
			return err
		}
		files, err := archive.ReadDir(filepath.Join(m.Root, "deploy/systemd"), "systemd", nil)
		if err != nil {
			return err
		}
		files = append(files, archive.File{Path: "lifeboatd", Data: daemon, Program: true})
		if _, err := m.archive(fmt.Sprintf("lifeboatd_%s_%s_%s.tar.gz", m.Version, t.OS, t.Arch), files, licences); err != nil {
			return err
		}
		if err := m.packages(t, daemon, licences); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) packages(t program.Target, daemon, licences []byte) error {
	tmp, err := os.MkdirTemp("", "lifeboat-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	content := []packages.File{{Source: filepath.Join(m.Root, "LICENSE"), Path: "/usr/share/doc/lifeboat-boot/LICENSE", Mode: 0o644}}
	for path, data := range map[string][]byte{"/usr/local/bin/lifeboatd": daemon, "/usr/share/doc/lifeboat-boot/THIRD-PARTY-LICENSES": licences} {
		file := filepath.Join(tmp, filepath.Base(path))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.Contains(path, "/bin/") {
			mode = 0o755
		}
		content = append(content, packages.File{Source: file, Path: path, Mode: mode})
	}
	for unit, path := range units {
		content = append(content, packages.File{Source: filepath.Join(m.Root, "deploy/systemd", unit), Path: path, Mode: 0o644})
	}
	for _, format := range packages.Formats {
		name, data, err := packages.Pack(m.Source, t, format, content)
		if err != nil {
			return err
		}
		if err := m.write(name, data); err != nil {
			return err
		}
	}
	return nil
}
