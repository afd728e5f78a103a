// Command linkcheck checks the links of a static website: `linkcheck DIR SOURCE`. Links to files and
// anchors must lead somewhere. Links that begin with SOURCE name files of this repository. Of other
// addresses it checks the form only, so that it needs no network.
package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"log"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: linkcheck DIR SOURCE")
	}
	s, err := read(os.DirFS(os.Args[1]))
	if err != nil {
		log.Fatalf("reading the site: %v", err)
	}
	problems := s.check(os.DirFS("."), os.Args[2])
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		fmt.Printf("%d problems in %s\n", len(problems), os.Args[1])
		os.Exit(1)
	}
}

// site is the files of a website. page is nil for a file that is no page.
type site map[string]*page

type page struct {
	ids   map[string]bool
	twice []string
	links []string
}

func read(dir fs.FS) (site, error) {
	s := site{}
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s[name] = nil
		if path.Ext(name) != ".html" {
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		s[name] = parse(string(text))
		return nil
	})
	if err == nil && s["index.html"] == nil {
		err = errors.New("it has no index.html: run `make docs`")
	}
	return s, err
}

// attribute matches what the generator writes: in text, quotes are escaped.
var attribute = regexp.MustCompile(` (id|href|src)="([^"]*)"`)

func parse(text string) *page {
	p := &page{ids: map[string]bool{}}
	for _, m := range attribute.FindAllStringSubmatch(text, -1) {
		value := html.UnescapeString(m[2])
		switch {
		case m[1] != "id":
			p.links = append(p.links, value)
		case p.ids[value]:
			p.twice = append(p.twice, value)
		}
		p.ids[value] = p.ids[value] || m[1] == "id"
	}
	return p
}

// check returns what is wrong. tree is the repository.
func (s site) check(tree fs.FS, source string) (problems []string) {
	for name, p := range s {
		if p == nil {
			continue
		}
		for _, id := range p.twice {
			problems = append(problems, fmt.Sprintf("%s: two elements have the id %q", name, id))
		}
		for _, link := range p.links {
			if err := s.link(name, link, tree, source); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s: %v", name, link, err))
			}
		}
	}
	return problems
}

func (s site) link(from, link string, tree fs.FS, source string) error {
	if file, ok := strings.CutPrefix(link, source); ok {
		file, _, _ = strings.Cut(file, "#")
		_, err := fs.Stat(tree, filepath.ToSlash(filepath.Clean(file)))
		return err
	}
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		return outside(u)
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	p, ok := s[to]
	switch {
	case !ok:
		return fmt.Errorf("the site has no %s", to)
	case u.Fragment != "" && p != nil && !p.ids[u.Fragment]:
		return fmt.Errorf("%s has no section %q", to, u.Fragment)
	}
	return nil
}

// outside checks the form of an address that is not of the site.
func outside(u *url.URL) error {
	web := u.Scheme == "https" || u.Scheme == "http"
	if web && u.Host != "" || u.Scheme == "mailto" {
		return nil
	}
	return errors.New("this is no address of the web")
}
