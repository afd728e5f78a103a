package testkit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bannedWords are words that this project does not use: archaic English, and private names that
// an engineer cannot search for. Each has the word to use instead.
var bannedWords = map[string]string{
	`nobody`:                      "no one who reads this can act on it: name the subject",
	`whoever`:                     "name the subject",
	`anew`:                        "again",
	`abreast`:                     "concurrently",
	`heard of`:                    "received",
	`(is|are) to be`:              "must be, or the active voice",
	`by itself`:                   "automatically, or alone",
	`comes again`:                 "is redelivered, or repeats",
	`hangs on`:                    "depends on",
	`in vain`:                     "without success",
	`though (it|they|he) be`:      "even if",
	`so that who`:                 "name the subject",
	`muster|berths?|vanguard`:     "barrier, slot",
	`herald|errands?|lobby|yard`:  "event recorder, hook runner, pending messages, reservations",
	`turnstile|likeness|foretold`: "semaphore, similarity, expected",
	`somebody|anybody`:            "name the subject: a user, another tool, another replica",
	`all the same`:                "still, or despite that",
	`that is none`:                "invalid, or unknown",
	`lest`:                        "otherwise, in a sentence of its own",
	`all else|but for`:            "other objects, except",
}

// bannedInNames finds such words in names, where they have no boundaries.
var bannedInNames = regexp.MustCompile(`\w*(Nobody|Whoever|Anew|Abreast|Errand|Muster|Herald|Vanguard|HeardOf|InVain|ComesAgain)\w*`)

// maxTestName is the longest name of a test, in characters.
const maxTestName = 60

var (
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
	// clauseName finds names of tests that begin with an article or a relative clause.
	clauseName = regexp.MustCompile(`^(Test|Fuzz)(An|The|What|Whatever|Whether|Who)[A-Z]|^(Test|Fuzz)A[A-Z][a-z]|NoMore`)
)

func TestNamesOfTestsAreShort(t *testing.T) {
	texts(t, " .go ", func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			switch {
			case len(found[1]) > maxTestName:
				t.Errorf("%s: %s has %d characters, at most %d", name, found[1], len(found[1]), maxTestName)
			case clauseName.MatchString(found[1]):
				t.Errorf("%s: %s: begin with the subject, then condition and result", name, found[1])
			}
		}
	})
}

// skippedDirs hold what others wrote, what is generated, and what is built.
var skippedDirs = map[string]bool{".git": true, "bin": true, "dist": true, "testdata": true, "samples": true, "node_modules": true}

// maxWords is the longest sentence of a document, in words.
const maxWords = 25

// texts calls f with each text file of the repository that has one of the extensions.
func texts(t *testing.T, extensions string, f func(name, text string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && skippedDirs[d.Name()] {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.Contains(extensions, " "+filepath.Ext(path)+" ") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(name), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBannedWords(t *testing.T) {
	words := map[*regexp.Regexp]string{}
	for word, instead := range bannedWords {
		words[regexp.MustCompile(`(?i)\b(`+word+`)\b`)] = instead
	}
	files := 0
	texts(t, " .go .md .yaml .txtar .sh .tpl ", func(name, text string) {
		files++
		if strings.HasSuffix(name, "/language_test.go") || strings.HasPrefix(filepath.Base(name), "zz_generated") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if found := bannedInNames.FindString(line); found != "" {
				t.Errorf("%s:%d: the name %q has a word that is not used: see bannedWords", name, i+1, found)
			}
			for word, instead := range words {
				if found := word.FindString(line); found != "" && found != "NoBody" { // http.NoBody
					t.Errorf("%s:%d: %q: write %s", name, i+1, found, instead)
				}
			}
		}
	})
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}

var (
	fence       = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode  = regexp.MustCompile("`[^`]*`")
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sentenceEnd = regexp.MustCompile(`[.!?:;]["')*]*(\s|$)`)
)

// sentences returns the sentences of the running text of a Markdown document: no code, no tables,
// no headings. A colon or a semicolon ends one.
func sentences(markdown string) (all []string) {
	markdown = fence.ReplaceAllString(markdown, "\n\n")
	var paragraph []string
	flush := func() {
		text := link.ReplaceAllString(inlineCode.ReplaceAllString(strings.Join(paragraph, " "), "X"), "$1")
		paragraph = nil
		for {
			at := sentenceEnd.FindStringIndex(text)
			if at == nil {
				break
			}
			all, text = append(all, text[:at[1]]), text[at[1]:]
		}
		all = append(all, text)
	}
	list := regexp.MustCompile(`^\s*([-*]|[0-9]+\.)\s`)
	for _, line := range strings.Split(markdown, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    "):
			flush()
			continue
		case list.MatchString(line):
			flush()
		}
		paragraph = append(paragraph, strings.TrimSpace(line))
	}
	flush()
	return all
}

func TestDocumentsHaveShortSentences(t *testing.T) {
	texts(t, " .md ", func(name, text string) {
		for _, s := range sentences(text) {
			if n := len(strings.Fields(s)); n > maxWords {
				t.Errorf("%s: a sentence of %d words, at most %d: %s", name, n, maxWords, s)
			}
		}
	})
}

func TestSentences(t *testing.T) {
	const text = "# A heading\n\nOne two. Three `four five` six: seven\neight.\n\n```\ncode. code.\n```\n\n| a | b |\n\n- nine ten\n- [eleven](x)\n"
	got := slices.DeleteFunc(sentences(text), func(s string) bool { return s == "" })
	want := []string{"One two. ", "Three X six: ", "seven eight.", "- nine ten", "- eleven"}
	if !slices.Equal(got, want) {
		t.Errorf("sentences: %q, want %q", got, want)
	}
}
