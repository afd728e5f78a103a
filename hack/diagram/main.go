// Command diagram draws the diagrams of docs/ that have a text as their source.
package main

import (
	"fmt"
	"html"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// names are the diagrams, without .txt and .svg, below docs/.
var names = []string{"architecture", "concepts/first-source"}

func main() {
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join("docs", name+".txt"))
		if err != nil {
			log.Fatalf("reading the source of a diagram: %v: run it in the root of the repository", err)
		}
		svg, err := draw(string(source))
		if err != nil {
			log.Fatalf("drawing docs/%s.txt: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join("docs", name+".svg"), []byte(svg), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// column is a column of boxes, and the label of the arrow to the next one. A box is its lines.
type column struct {
	boxes [][]string
	arrow string
}

// style has the colours, for light and dark.
const style = `<style>
rect{fill:#eef4fb;stroke:#345}.back{fill:#fff;stroke:none}text{fill:#111}.arrow{fill:none;stroke:#555;stroke-width:1.5}.head,.label{fill:#555}
@media (prefers-color-scheme:dark){rect{fill:#1c2f42;stroke:#8ab4d8}.back{fill:#12181e}text{fill:#e6edf3}.arrow{stroke:#b4c0cb}.head,.label{fill:#b4c0cb}}
</style>
`

// The sizes, in pixels.
const (
	boxWidth, gap  = 176, 84
	line, padding  = 18, 12
	between, frame = 16, 12
)

func boxHeight(lines []string) int { return len(lines)*line + 2*padding }

func (c column) height() int {
	height := (len(c.boxes) - 1) * between
	for _, b := range c.boxes {
		height += boxHeight(b)
	}
	return height
}

func parse(source string) (title string, columns []column, err error) {
	for i, text := range strings.Split(source, "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch {
		case word == "" || word[0] == '#':
		case word == "title":
			title = rest
		case word == "column":
			columns = append(columns, column{})
		case len(columns) > 0 && word == "box":
			c := &columns[len(columns)-1]
			c.boxes = append(c.boxes, strings.Split(rest, "|"))
		case len(columns) > 0 && word == "arrow":
			columns[len(columns)-1].arrow = rest
		default:
			return "", nil, fmt.Errorf("line %d: %q: write title, column, box or arrow", i+1, text)
		}
	}
	return title, columns, nil
}

func draw(source string) (string, error) {
	title, columns, err := parse(source)
	if err != nil {
		return "", err
	}
	height := 0
	for _, c := range columns {
		height = max(height, c.height())
	}
	width := len(columns)*(boxWidth+gap) - gap
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<title>%s</title>
%s<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" class="head"/></marker></defs>
<rect width="100%%" height="100%%" class="back"/>
`, width+2*frame, height+2*frame, html.EscapeString(title), style)
	middle := frame + height/2
	for i, c := range columns {
		x := frame + i*(boxWidth+gap)
		for j, y := range c.centres(middle) {
			drawBox(&b, x, y-boxHeight(c.boxes[j])/2, c.boxes[j])
		}
		if i+1 < len(columns) {
			drawArrows(&b, x+boxWidth, middle, c, columns[i+1])
		}
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// centres returns the height of the middle of each box.
func (c column) centres(middle int) (all []int) {
	y := middle - c.height()/2
	for _, b := range c.boxes {
		all = append(all, y+boxHeight(b)/2)
		y += boxHeight(b) + between
	}
	return all
}

// drawArrows connects each box of a column with each box of the next one.
func drawArrows(b *strings.Builder, x, middle int, from, to column) {
	for _, start := range from.centres(middle) {
		for _, end := range to.centres(middle) {
			fmt.Fprintf(b, `<path d="M%d %dL%d %d" class="arrow" marker-end="url(#head)"/>
`, x+4, start, x+gap-4, end)
		}
	}
	label := middle - 8 // above the arrow
	if len(from.boxes)*len(to.boxes)%2 == 0 {
		label = middle + 4 // between two arrows
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" class="label">%s</text>
`, x+gap/2, label, html.EscapeString(from.arrow))
}

func drawBox(b *strings.Builder, x, y int, lines []string) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6"/>
`, x, y, boxWidth, boxHeight(lines))
	for i, text := range lines {
		weight := "normal"
		if i == 0 {
			weight = "bold"
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-weight="%s">%s</text>
`, x+boxWidth/2, y+padding+i*line+13, weight, html.EscapeString(strings.TrimSpace(text)))
	}
}
