// Package bundle writes an archive for support. It removes what can be a credential.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Entry is one file of an archive.
type Entry struct {
	Name string
	Size int
}

// Bundle is an archive that is being written. Objects are added before text, because the
// webhook URLs in them are also removed from text.
type Bundle struct {
	zip      *gzip.Writer
	tar      *tar.Writer
	at       time.Time
	contents []Entry
	problems []string
	secrets  *redactor
}

// New begins an archive.
func New(w io.Writer, at time.Time) *Bundle {
	zip := gzip.NewWriter(w)
	return &Bundle{zip: zip, tar: tar.NewWriter(zip), at: at, secrets: &redactor{}}
}

// AddJSON adds objects of the API, without managed fields and without what can be a credential.
func (b *Bundle) AddJSON(name string, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	b.secrets.clean(value)
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return b.Add(name, append(text, '\n'))
}

// Add adds text, without the webhook URLs of objects that were added before.
func (b *Bundle) Add(name string, text []byte) error {
	text = b.secrets.text(text)
	header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: b.at}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("adding %s: %w", name, err)
	}
	if _, err := b.tar.Write(text); err != nil {
		return fmt.Errorf("adding %s: %w", name, err)
	}
	b.contents = append(b.contents, Entry{name, len(text)})
	return nil
}

// Failed notes that a part could not be read. A nil error is no failure.
func (b *Bundle) Failed(part string, err error) {
	if err != nil {
		b.problems = append(b.problems, part+": "+err.Error())
	}
}

// Close ends the archive, and returns its contents by name.
func (b *Bundle) Close() ([]Entry, error) {
	if len(b.problems) > 0 {
		if err := b.Add("errors.txt", []byte(strings.Join(b.problems, "\n")+"\n")); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.contents, func(x, y Entry) int { return strings.Compare(x.Name, y.Name) })
	return b.contents, errors.Join(b.tar.Close(), b.zip.Close())
}
