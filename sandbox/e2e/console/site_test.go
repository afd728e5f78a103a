//go:build e2e

package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// sitePath is where the test serves the website: any path must do.
const sitePath = "/any/path/"

// TestDocumentationSite builds the website of the documentation and reads it as a person does. `make docs`
// checks all links.
func TestDocumentationSite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "docs")
	build := exec.CommandContext(t.Context(), "make", "docs")
	build.Dir, build.Env = "../../..", append(os.Environ(), "DOCS="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make docs: %v\n%s", err, out)
	}
	server := httptest.NewServer(http.StripPrefix(sitePath, http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	site := &rig{url: server.URL + sitePath + "index.html"}

	t.Run("search", func(t *testing.T) { findByKeyboard(t, site) })
	t.Run("search from a disk", func(t *testing.T) { findByKeyboard(t, &rig{url: "file://" + dir + "/index.html"}) })
	t.Run("skip link", func(t *testing.T) {
		b := site.open(t, 1280, 900)
		b.run(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
		b.until(`document.activeElement.id === "content"`)
	})
	t.Run("navigation", func(t *testing.T) {
		b := site.open(t, 1280, 900)
		b.run(chromedp.Focus(`nav a[href$="guides/policy.html"]`), chromedp.KeyEvent(kb.Enter))
		b.arrives(`document.title === "Write a policy – Lifeboat" && document.querySelector("nav a[aria-current]").innerText === "Write a policy"`)
	})
	t.Run("phone", func(t *testing.T) {
		b := site.open(t, 375, 700)
		b.until(`getComputedStyle(document.getElementById("navigation")).display === "none"`)
		b.run(chromedp.Focus("#menu"), chromedp.KeyEvent(kb.Enter))
		b.until(`getComputedStyle(document.getElementById("navigation")).display !== "none" && document.getElementById("menu").ariaExpanded === "true"`)
	})
	t.Run("accessible", func(t *testing.T) { siteIsAccessible(t, site, server.URL+sitePath) })
}

// findByKeyboard searches for a section and opens it, without a mouse.
func findByKeyboard(t *testing.T, site *rig) {
	b := site.open(t, 1280, 900)
	b.run(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.id === "search"`)
	b.run(chromedp.KeyEvent("last call grace margin"))
	b.until(`document.querySelector('#results:not([hidden]) a[href*="concepts/last-call.html"]')`)
	b.run(chromedp.KeyEvent(" qqqq"))
	b.until(`document.getElementById("found").innerText === "No section has these words."`)
	b.run(chromedp.KeyEvent(strings.Repeat(kb.Backspace, len(" qqqq"))))
	b.until(`!document.getElementById("results").hidden`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.until(`document.activeElement.closest("#results")`)
	to := value[string](b, "document.activeElement.href")
	b.run(chromedp.KeyEvent(kb.Enter))
	quoted, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	b.arrives("location.href === " + string(quoted) + ` && document.getElementById(location.hash.slice(1))`)
}

// arrives waits until an expression is true on another page. While the browser loads that page, there is
// nothing to ask.
func (b *browser) arrives(expression string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, waitTime)
	defer stop()
	for there := false; !there; {
		if err := chromedp.Run(ctx, chromedp.Sleep(50*time.Millisecond), chromedp.Evaluate("Boolean("+expression+")", &there)); ctx.Err() != nil {
			b.t.Fatalf("%s: %v\n%s", expression, err, b.text())
		}
	}
}

// siteIsAccessible opens a page of each form in light and dark, on a desktop and a phone.
func siteIsAccessible(t *testing.T, site *rig, url string) {
	axe, err := os.ReadFile("testdata/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, width := range map[string]int64{"desktop": 1280, "phone": 375} {
		b := site.open(t, width, 800)
		for _, page := range []string{"index", "concepts/life-of-a-notice", "guides/policy", "reference/metrics", "comparison", "adr/index"} {
			b.run(chromedp.Navigate(url+page+".html"), chromedp.Evaluate(string(axe), nil))
			for _, theme := range []string{"light", "dark"} {
				b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
				b.until(`matchMedia("(prefers-color-scheme: ` + theme + `)").matches`)
				var found []string
				if err := json.Unmarshal([]byte(value[string](b, violations)), &found); err != nil {
					t.Fatal(err)
				}
				for _, v := range found {
					t.Errorf("%s, %s, %s: %s", name, theme, page, v)
				}
			}
			if wide := value[int](b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("%s, %s: the page is %d pixels wider than the screen", name, page, wide)
			}
		}
	}
}
