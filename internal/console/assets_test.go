package console

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

var (
	inline     = regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=|javascript:`)
	writesHTML = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment`)
	imported   = regexp.MustCompile(`from "\./([a-z]+\.js)"`)
	elsewhere  = regexp.MustCompile(`https?://`)
)

// The content security policy refuses inline code. Text from the cluster must never become markup.
func TestAssetsHaveNoInlineCode(t *testing.T) {
	files := 0
	err := fs.WalkDir(assets, "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		bytes, err := fs.ReadFile(assets, path)
		if err != nil {
			return err
		}
		text := string(bytes)
		if strings.HasSuffix(path, ".html") && inline.MatchString(text) {
			t.Errorf("%s has inline code: %q", path, inline.FindString(text))
		}
		if writesHTML.MatchString(text) {
			t.Errorf("%s makes markup from text: %q", path, writesHTML.FindString(text))
		}
		if found := elsewhere.FindAllString(strings.ReplaceAll(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), "http://www.w3.org/1999/xhtml", ""), 1); found != nil {
			t.Errorf("%s names another site", path)
		}
		for _, name := range imported.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(assets, "assets/"+name[1]); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
}
