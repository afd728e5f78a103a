package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/template"
)

// files looks at templates.
func (d *examination) files(context.Context) ([]finding.Finding, error) {
	var files []template.File
	for _, name := range d.flags.files {
		file, err := d.read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	found, err := template.Read(files, template.Place{Region: d.flags.region})
	if err != nil {
		return nil, err
	}
	want := wiring.Desired(d.flags.cluster, found.Account, found.Region)
	for _, q := range found.Queues {
		named := d.flags.queueURL != "" && q.Name == snapshot.Name(d.flags.queueURL)
		if named || d.flags.cluster != "" && d.flags.queueURL == "" && q.Name == want.Queue.Name {
			found.Queue = q.ARN
		}
	}
	d.subject = fmt.Sprintf("%s and %s", counted(len(found.Queues), "queue"), counted(len(found.Rules), "rule"))
	if n := len(found.Groups); n > 0 {
		d.subject += " and " + counted(n, "Auto Scaling group")
	}
	return diagnose.Run(found, want, diagnose.Cluster{}), nil
}

// largestFile bounds what is read from a file: CloudFormation takes a megabyte, a
// state of Terraform may be larger.
const largestFile = 64 << 20

func (s *session) read(name string) (template.File, error) {
	from, shown := s.env.In, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return template.File{}, fmt.Errorf("reading %s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from, shown = f, name
	}
	data, err := io.ReadAll(io.LimitReader(from, largestFile+1))
	switch {
	case err != nil:
		return template.File{}, fmt.Errorf("reading %s: %w", shown, err)
	case len(data) > largestFile:
		return template.File{}, fmt.Errorf("reading %s: it is larger than %d MB", shown, largestFile>>20)
	}
	return template.File{Name: shown, Data: data}, nil
}
