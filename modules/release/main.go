// Command release makes what users install: lifeboatd's image, the chart, archives of
// programs, packages, and the evidence of what is in them. The same commit gives the same
// bytes on every machine with the same toolchain.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/image"
	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

const usage = `usage: release image|chart|release|push [flags]

  image    write lifeboatd's image as an OCI layout
  chart    write the chart as a file and as an OCI layout
  release  write all files of a release
  push     push an OCI layout to a registry
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	root, version, out, push, sandbox string
	insecure                          bool
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	var o options
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	f.StringVar(&o.root, "root", "../..", "directory of the repository")
	f.StringVar(&o.version, "version", "", "version, as git describe prints it")
	f.StringVar(&o.out, "out", "dist", "directory to write to; for push: the layout to read")
	f.StringVar(&o.push, "push", "", "repository to push to, such as HOST/lifeboatd")
	f.BoolVar(&o.insecure, "insecure", false, "push by http")
	f.StringVar(&o.sandbox, "sandbox", "", "directory with the programs of the sandbox, as `go run ./hack/assets -o DIR` in sandbox/ writes it")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "image":
		return o.image(ctx)
	case "chart":
		return o.chart(ctx)
	case "release":
		return o.release(ctx)
	case "push":
		return o.pushLayout(ctx, o.out)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}

// imageLayout is the directory of the image in the output.
const imageLayout = "image"

func (o options) image(ctx context.Context) error {
	s, err := o.source(ctx)
	if err != nil {
		return err
	}
	digest, err := makeImage(ctx, s, filepath.Join(o.out, imageLayout))
	if err != nil {
		return err
	}
	fmt.Printf("%s/%s: lifeboatd %s, %s\n", o.out, imageLayout, s.Version, digest)
	if o.push == "" {
		return nil
	}
	return o.pushLayout(ctx, filepath.Join(o.out, imageLayout))
}

func (o options) chart(ctx context.Context) error {
	s, err := o.source(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	m := &maker{Source: s, dir: o.out}
	if err := m.chart(ctx); err != nil {
		return err
	}
	if o.push == "" {
		return nil
	}
	return o.pushLayout(ctx, filepath.Join(o.out, chartLayout))
}

func (o options) pushLayout(ctx context.Context, layout string) error {
	if o.push == "" {
		return fmt.Errorf("no repository: write where to push to, such as -push HOST/lifeboatd")
	}
	return image.Push(ctx, layout, o.push, o.insecure, func(ref string) { fmt.Println("pushed", ref) })
}

func (o options) source(ctx context.Context) (source.Source, error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return source.Source{}, err
	}
	if o.version == "" {
		return source.Source{}, fmt.Errorf("no version: write -version v1.2.3")
	}
	s, err := source.Read(ctx, root, o.version)
	if err == nil && s.Dirty {
		fmt.Fprintln(os.Stderr, "release: the working tree differs from the commit, so others cannot reproduce the result")
	}
	return s, err
}
