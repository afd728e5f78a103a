package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// files checks templates.
func (d *doctorRun) files(context.Context) ([]finding.Finding, error) {
	var files []template.File
	for _, name := range d.flags.files {
		file, err := d.read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	found, err := template.Read(files, template.Given{Account: d.flags.account, Region: d.flags.region, Parameters: d.flags.parameters})
	if err != nil {
		return nil, err
	}
	want := awssetup.Desired(d.flags.cluster, found.Account, found.Region)
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
	return doctor.Run(found, want, doctor.Cluster{}), nil
}

// maxFileSize limits the size of an input file. CloudFormation accepts 1 MB; a
// Terraform state can be larger.
const maxFileSize = 64 << 20

func (s *session) read(name string) (template.File, error) {
	from, shown := s.env.In, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return template.File{}, fmt.Errorf("reading %s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // opened for reading only
		from, shown = f, name
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFileSize+1))
	switch {
	case err != nil:
		return template.File{}, fmt.Errorf("reading %s: %w", shown, err)
	case len(data) > maxFileSize:
		return template.File{}, fmt.Errorf("reading %s: the file is larger than %d MB", shown, maxFileSize>>20)
	}
	return template.File{Name: shown, Data: data}, nil
}
