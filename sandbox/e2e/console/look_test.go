//go:build e2e

package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the picture of the documentation")

// picture is the picture of the documentation.
const picture = "../../../docs/console.png"

// violations are those of axe-core's rules that matter to a person.
const violations = `axe.run(document, {resultTypes: ["violations"]}).then((result) => JSON.stringify(result.violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join(" | "))))`

func TestPagesAreAccessible(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	r, now := &shared, time.Now()
	r.write(t, record("i-0000000000000000a", "ip-10-0-0-1.ec2.internal", now), over(record("i-0000000000000000c", "ip-10-0-0-3.ec2.internal", now.Add(-time.Hour)), 2*time.Minute))
	for name, size := range map[string][2]int64{"desktop": {1280, 900}, "phone": {390, 800}} {
		b := r.open(t, size[0], size[1])
		b.run(chromedp.Evaluate(string(axe), nil))
		for _, theme := range []string{"light", "dark"} {
			b.until(`document.getElementById("theme").textContent === "Theme: ` + theme + `" || (document.getElementById("theme").click(), false)`)
			for hash, text := range map[string]string{
				"#/": "shop/db-0", "#/history": "ip-10-0-0-3", "#/wiring": "Policies", "#/plan?node=ip-10-0-0-1.ec2.internal": "in a terminal", "#/i/i-0000000000000000a": "shop/web-2",
			} {
				b.visit(hash)
				b.shows(text)
				var found []string
				if err := json.Unmarshal([]byte(value[string](b, violations)), &found); err != nil {
					t.Fatal(err)
				}
				for _, v := range found {
					t.Errorf("%s, %s, %s: %s", name, theme, hash, v)
				}
				if wide := value[int](b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
					t.Errorf("%s, %s: the page is %d pixels wider than the screen", name, hash, wide)
				}
			}
		}
	}
}

// The picture in the documentation shows the console as it is. Fonts differ between machines, so
// only blocks of pixels are compared.
func TestPictureIsCurrent(t *testing.T) {
	r := &shared
	noticed := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	r.write(t, over(record("i-0a1b2c3d4e5f60718", "ip-10-0-0-1.ec2.internal", noticed), 2*time.Minute))
	b := r.open(t, 1180, 900)
	b.visit("#/i/i-0a1b2c3d4e5f60718")
	b.until(`document.querySelectorAll(".lanes tbody tr").length === 6`)
	var shot []byte
	b.run(chromedp.CaptureScreenshot(&shot))
	if *update {
		if err := os.WriteFile(picture, shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) > 200_000 {
		t.Errorf("the picture has %d bytes, more than 200 kB", len(want))
	}
	const most = 0.06
	if d := difference(t, shot, want); d > most {
		t.Errorf("%s differs by %.3f from the page, more than %.2f; go test -update writes it", picture, d, most)
	} else {
		t.Logf("the picture differs by %.3f", d)
	}
}

// difference is the mean difference of brightness of 48 by 32 blocks, from 0 to 1.
func difference(t *testing.T, a, b []byte) float64 {
	t.Helper()
	decode := func(text []byte) image.Image {
		img, err := png.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	const columns, rows = 48, 32
	one, other, sum := decode(a), decode(b), 0.0
	for x := range columns {
		for y := range rows {
			sum += math.Abs(brightness(one, x, y, columns, rows) - brightness(other, x, y, columns, rows))
		}
	}
	return sum / (columns * rows)
}

func brightness(img image.Image, x, y, columns, rows int) float64 {
	r := img.Bounds()
	sum, n := 0.0, 0
	for px := r.Dx() * x / columns; px < r.Dx()*(x+1)/columns; px += 2 {
		for py := r.Dy() * y / rows; py < r.Dy()*(y+1)/rows; py += 2 {
			gray, _ := color.GrayModel.Convert(img.At(r.Min.X+px, r.Min.Y+py)).(color.Gray)
			sum, n = sum+float64(gray.Y)/255, n+1
		}
	}
	return sum / float64(n)
}
