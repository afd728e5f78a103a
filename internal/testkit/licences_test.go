package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licences are the licences that a linked module may have, each with words that only its
// text has. All permit distribution in binary form with the text beside it.
var licences = map[string]*regexp.Regexp{
	"Apache-2.0": words(`Apache License Version 2\.0|apache\.org/licenses/LICENSE-2\.0`),
	"BSD":        words(`Redistribution and use in source and binary forms, with or without modification, are permitted`),
	"ISC":        words(`Permission to use, copy, modify, (and/or|and) distribute this software for any purpose with or without fee is hereby granted`),
	"MIT":        words(`Permission is hereby granted, free of charge, to any person obtaining a copy`),
	"MPL-2.0":    words(`Mozilla Public License,? [Vv]ersion 2\.0`),
}

// words matches a text whatever its line breaks are.
func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(pattern, " ", `\s+`))
}

// forbidden are words of licences that also demand the source of what links them, or limit
// the use.
var forbidden = regexp.MustCompile(`(?i)GNU (Affero |Lesser )?General Public License|Business Source License|Server Side Public License|Commons Clause|Creative Commons`)

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([-._].*)?$`)

// licencesOf returns the allowed licences in a text, and whether a forbidden one is in it.
func licencesOf(text string) (found []string, bad string) {
	for name, words := range licences {
		if words.MatchString(text) {
			found = append(found, name)
		}
	}
	if slices.Contains(found, "MPL-2.0") {
		return found, "" // its text names the GNU licences
	}
	slices.Sort(found)
	return found, forbidden.FindString(text)
}

// linkedModules returns the directory of each module that the programs link, by name and
// version.
func linkedModules(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}`, "./cmd/...")
	list.Dir = filepath.Join(root(t), dir)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing what the programs link: %v", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, where, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[name] = where
		}
	}
	return found
}

func TestLinkedModulesHaveAllowedLicences(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "sandbox"} {
		modules, counts := linkedModules(t, dir), map[string]int{}
		if len(modules) < 40 {
			t.Errorf("%s: only %d modules", dir, len(modules))
		}
		for name, where := range modules {
			if strings.HasPrefix(name, "github.com/lifeboat-dev/lifeboat@") {
				continue // the sandbox links the root module
			}
			files, err := os.ReadDir(where)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, file := range files {
				if file.IsDir() || !licenceFile.MatchString(file.Name()) {
					continue
				}
				text, err := os.ReadFile(filepath.Join(where, file.Name()))
				if err != nil {
					t.Fatal(err)
				}
				allowed, bad := licencesOf(string(text))
				if bad != "" {
					t.Errorf("%s: %s contains %q: do not link the module", name, file.Name(), bad)
				}
				found = append(found, allowed...)
			}
			if len(found) == 0 {
				t.Errorf("%s has no licence that this test knows: read %s, and add the licence here if it permits distribution", name, where)
			}
			for _, licence := range slices.Compact(found) {
				counts[licence]++
			}
		}
		t.Logf("%s: %d modules, %v", dir, len(modules), counts)
	}
}

func TestLicencesAreRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"                                 Apache License\n                           Version 2.0, January 2004":                          "Apache-2.0",
		"Permission is hereby granted, free of charge, to any person obtaining a copy":                                                   "MIT",
		"Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided":                       "BSD",
		"Permission to use, copy, modify, and distribute this software for any\npurpose with or without fee is hereby granted, provided": "ISC",
		"Mozilla Public License Version 2.0":     "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE\n Version 3": "! GNU GENERAL PUBLIC LICENSE",
		"GNU AFFERO GENERAL PUBLIC LICENSE":      "! GNU AFFERO GENERAL PUBLIC LICENSE",
		"All rights reserved.":                   "",
		"Business Source License 1.1":            "! Business Source License",
	} {
		found, bad := licencesOf(text)
		got := strings.Join(found, " ")
		if bad != "" {
			got += "! " + bad
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
