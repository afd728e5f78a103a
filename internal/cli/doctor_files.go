package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// files checks templates.
func (d *doctorRun) files(context.Context) ([]finding.Finding, error) {
	files, err := d.readFiles()
	if err != nil {
		return nil, err
	}
	found, err := template.Read(files, template.Given{
		Account: d.flags.account, Region: d.flags.region, Parameters: d.flags.parameters, Disk: disk{},
	})
	switch {
	case errors.Is(err, template.ErrNoWiring) && len(d.flags.files) == 0:
		d.nothing = true
		return nil, nil
	case err != nil:
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

// readFiles reads the files of -f, and the arguments, which need not be about wiring.
func (d *doctorRun) readFiles() ([]template.File, error) {
	var files []template.File
	for i, name := range slices.Concat(d.flags.files, d.flags.arguments) {
		some, err := d.readAny(name)
		if err != nil {
			return nil, err
		}
		for _, file := range some {
			file.Found = file.Found || i >= len(d.flags.files)
			files = append(files, file)
			if file.Name != standardInput {
				d.filesRead = append(d.filesRead, file.Name)
			}
		}
	}
	return files, nil
}

// disk reads the modules that a Terraform configuration names.
type disk struct{}

// ReadFile implements tfconfig.Disk.
func (disk) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFileSize) {
		return nil, fmt.Errorf("reading %s: it is no file of at most %d MB", name, maxFileSize>>20)
	}
	return os.ReadFile(name) //nolint:wrapcheck // the caller only needs to know that it failed
}

// ReadDir implements tfconfig.Disk.
func (disk) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(name) //nolint:wrapcheck // the caller only needs to know that it failed
}

// readAny reads a file, the files of a directory, or those that match a glob.
func (s *session) readAny(name string) ([]template.File, error) {
	info, err := os.Stat(name)
	var names []string
	switch {
	case name == "-" || err == nil && !info.IsDir():
		file, err := s.read(name)
		return []template.File{file}, err
	case err == nil:
		names, err = filesIn(name)
	case strings.ContainsAny(name, "*?["):
		names, err = filepath.Glob(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var all []template.File
	for _, n := range names {
		if info, err := os.Stat(n); err == nil && info.IsDir() {
			continue // a glob matches directories too
		}
		file, err := s.read(n)
		if err != nil {
			return nil, err
		}
		file.Found = true
		all = append(all, file)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading %s: it has no file to check: give CloudFormation (.yaml, .json, .template), Terraform (.tf) or the output of the AWS CLI (.json)", name)
	}
	return all, nil
}

// maxFiles limits the number of files in a directory.
const maxFiles = 2000

// filesIn returns the files of a directory that can have wiring. It skips hidden
// directories, those of dependencies, and the assets of CDK.
func filesIn(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && name != dir && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "asset.") || base == "node_modules"):
			return fs.SkipDir
		case entry.Type().IsRegular() && slices.Contains([]string{".tf", ".tfvars", ".tofu", ".json", ".yaml", ".yml", ".template"}, filepath.Ext(base)):
			names = append(names, name)
		}
		if len(names) > maxFiles {
			return fmt.Errorf("it has more than %d files: give the directory of the wiring", maxFiles)
		}
		return nil
	})
	return names, err
}

// maxFileSize limits the size of an input file. CloudFormation accepts 1 MB; a
// Terraform state can be larger.
const maxFileSize = 64 << 20

// standardInput is the name of the file "-".
const standardInput = "standard input"

func (s *session) read(name string) (template.File, error) {
	from, shown := s.env.In, standardInput
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
