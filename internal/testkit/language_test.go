package testkit_test

import (
	"io/fs"
	"maps"
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
	`doomed`:                      "interrupted",
	`comes? to nothing`:           "has no effect",
	`goes? dark`:                  "loses power",
	`stand-ins?|stands? in`:       "substitute",
}

// bannedInNames finds such words in names, where they have no boundaries.
var bannedInNames = regexp.MustCompile(`\w*(Nobody|Whoever|Anew|Abreast|Errand|Muster|Herald|Vanguard|HeardOf|InVain|ComesAgain|Doomed|TellWrong)\w*`)

// bannedWithExceptions are banned like bannedWords, except in the directories of exceptions, which
// still use them.
var bannedWithExceptions = map[string]string{
	`told|heard|hears?`:             "received, or the name of the value",
	`stor(y|ies)`:                   "scenario, or history",
	`stands? for`:                   "represents, or matches",
	`for ever`:                      "permanently, or never ends",
	`\w*(Told|Heard|Unheard|Hears)`: "received, or the name of the value",
}

// exceptions are directories, and documents about the findings of doctor.
var exceptions = regexp.MustCompile(`^(internal/(awssetup|cli|doctor|hooks)|sandbox/judge|charts|docs/(guides/(doctor|from-nth|rehearse)|reference/(cli|lifeboatd))\.md$)`)

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
	words, further := anyOf(bannedWords), anyOf(bannedWithExceptions)
	files := 0
	texts(t, " .go .md .yaml .txtar .sh .tpl ", func(name, text string) {
		files++
		if strings.HasSuffix(name, "/language_test.go") || strings.HasPrefix(filepath.Base(name), "zz_generated") {
			return
		}
		report := func(banned *regexp.Regexp, instead map[string]string) {
			for _, at := range banned.FindAllStringIndex(text, -1) {
				found, line := text[at[0]:at[1]], 1+strings.Count(text[:at[0]], "\n")
				if found == "NoBody" || found == "ObjectOld" { // http.NoBody; event.UpdateEvent
					continue
				}
				t.Errorf("%s:%d: %q: write %s", name, line, found, adviceFor(found, instead))
			}
		}
		report(bannedInNames, nil)
		report(words, bannedWords)
		if !exceptions.MatchString(name) {
			report(further, bannedWithExceptions)
		}
	})
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}

// anyOf returns a pattern for all words. One pattern is much faster than one for each word.
func anyOf(words map[string]string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + strings.Join(slices.Sorted(maps.Keys(words)), "|") + `)\b`)
}

func adviceFor(found string, instead map[string]string) string {
	for word, advice := range instead {
		if regexp.MustCompile(`(?i)^(` + word + `)$`).MatchString(found) {
			return advice
		}
	}
	return "another name: see bannedInNames"
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
