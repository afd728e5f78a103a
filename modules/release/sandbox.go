package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/archive"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/evidence"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/listing"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/program"
)

// sandbox writes the archive that needs neither Go nor a clone: the three programs, and in
// programs/ what the sandbox starts. Those are built for the platform of this machine only.
func (m *maker) sandbox(ctx context.Context, programs string) error {
	if programs == "" {
		fmt.Fprintln(os.Stderr, "release: no archive of the sandbox, because -sandbox names no directory")
		return nil
	}
	t := program.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}
	name := fmt.Sprintf("lifeboat-sandbox_%s_%s_%s", m.Version, t.OS, t.Arch)
	files, err := archive.ReadDir(programs, path.Join(name, "programs"), nil)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no program in %s: run `go run ./hack/assets -o %s` in sandbox/", programs, programs)
	}
	for _, p := range []struct{ dir, pkg string }{{".", cliPackage}, {".", daemonPackage}, {"sandbox", "./cmd/lifeboat-sandbox"}} {
		data, err := m.compile(ctx, p.dir, p.pkg, t)
		if err != nil {
			return err
		}
		files = append(files, archive.File{Path: path.Join(name, path.Base(p.pkg)), Data: data, Program: true})
	}
	licences, err := program.Licences(ctx, m.Source, "sandbox", t, "./cmd/lifeboat-sandbox")
	if err != nil {
		return err
	}
	for _, module := range []string{"kubernetes", "kwok", "karpenter"} {
		more, err := program.Licences(ctx, m.Source, "modules/"+module, t, ".")
		if err != nil {
			return err
		}
		licences = append(licences, more...)
	}
	files = append(files,
		archive.File{Path: path.Join(name, "README"), Data: []byte(sandboxReadme)},
		archive.File{Path: path.Join(name, "LICENSE"), Data: m.licence},
		archive.File{Path: path.Join(name, "THIRD-PARTY-LICENSES"), Data: licences})
	data, err := archive.TarGz(files, m.Time)
	if err != nil {
		return err
	}
	return m.write(name+".tar.gz", data)
}

const sandboxReadme = `Lifeboat's sandbox: a Kubernetes control plane, simulated nodes, Karpenter and an
emulator of AWS on this machine. It needs no cloud account and no other program.

  ./lifeboat sandbox demo            play a spot interruption
  ./lifeboat sandbox up --nodes 3    start a cluster; prints how to use it
  ./lifeboat sandbox down
`

// lists writes the files for krew and Homebrew.
func (m *maker) lists(context.Context) error {
	krew, err := listing.Krew(m.Source, m.cli)
	if err != nil {
		return err
	}
	if err := m.write("krew-lifeboat.yaml", krew); err != nil {
		return err
	}
	formula, err := listing.Homebrew(m.Source, m.cli)
	if err != nil {
		return err
	}
	return m.write("lifeboat.rb", formula)
}

// evidence comes last: it covers all other files.
func (m *maker) evidence(context.Context) error {
	sbom, err := evidence.SBOM(m.Source, evidence.Distinct(m.programs))
	if err != nil {
		return err
	}
	if err := m.write("lifeboat_"+m.Version+".spdx.json", sbom); err != nil {
		return err
	}
	files, err := evidence.Files(m.dir)
	if err != nil {
		return err
	}
	provenance, err := evidence.Provenance(m.Source, append(m.images, files...))
	if err != nil {
		return err
	}
	if err := m.write("lifeboat_"+m.Version+".intoto.json", provenance); err != nil {
		return err
	}
	if files, err = evidence.Files(m.dir); err != nil {
		return err
	}
	sums := evidence.Sums(files)
	if err := m.write("SHA256SUMS", sums); err != nil {
		return err
	}
	return m.sign(sums)
}

func (m *maker) sign(sums []byte) error {
	for _, i := range m.images {
		fmt.Printf("%s@sha256:%s\n", i.Name, i.Digest.SHA256)
	}
	key, err := evidence.Key()
	if err != nil {
		return err
	}
	if key == nil {
		fmt.Printf("NOT SIGNED: $%s has no key\n", evidence.KeyEnv)
		return nil
	}
	signature, err := evidence.Sign(key, sums)
	if err != nil {
		return err
	}
	if err := m.write("SHA256SUMS.sig", []byte(signature)); err != nil {
		return err
	}
	public, err := evidence.PublicKey(key)
	if err != nil {
		return err
	}
	return m.write("cosign.pub", public)
}
