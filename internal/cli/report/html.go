package report

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed style.css
var style string

// WriteHTML writes the report as one page, which loads nothing and runs no script. html/template
// would link text/template, and with it every method of every type: 14 MB.
func (r Report) WriteHTML(w io.Writer) error {
	p := &page{}
	title := "Interruptions"
	if r.Cluster != "" {
		title += " of " + r.Cluster
	}
	p.raw(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">` +
		`<meta name="viewport" content="width=device-width, initial-scale=1">`)
	p.element("title", title)
	p.raw("<style>\n" + style + "</style></head>\n<body>")
	p.element("h1", title)
	p.element("p", Clock(r.From)+" to "+Clock(r.To))
	p.element("p", fmt.Sprintf("%d interruptions, %d of them under way. %d pods left in time, %d were lost. Least time to spare: %s.",
		r.Total.Interruptions, r.Total.Open, r.Total.PodsMoved, r.Total.PodsLost, Spare(r.Total.LeastSpareSeconds)))
	p.gaps(r.Gaps)
	p.kinds(r.Kinds)
	p.rows(r.Interruptions)
	p.raw("</body></html>\n")
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// page is HTML. All text from outside goes through element or cells, which escape it.
type page struct{ strings.Builder }

func (p *page) raw(markup string) { p.WriteString(markup) }

func (p *page) element(name, text string) {
	p.raw("<" + name + ">" + html.EscapeString(text) + "</" + name + ">\n")
}

func (p *page) gaps(all []string) {
	if len(all) == 0 {
		return
	}
	p.raw(`<div class="gaps">`)
	p.element("h2", "What this does not contain")
	p.raw("<ul>")
	for _, gap := range all {
		p.element("li", gap)
	}
	p.raw("</ul></div>\n")
}

func (p *page) kinds(all []Kind) {
	p.element("h2", "By kind")
	p.table("Kind", "Interruptions", "Under way", "Pods moved", "Pods lost", "Least to spare")
	for _, k := range all {
		p.cells(k.PodsLost > 0, k.Kind, k.Interruptions, k.Open, k.PodsMoved, k.PodsLost, Spare(k.LeastSpareSeconds))
	}
	p.raw("</tbody></table></div>\n")
}

func (p *page) rows(all []Interruption) {
	p.element("h2", "Each interruption")
	p.table("Notice", "Node", "Instance", "Kind", "Action", "Policy", "Phase", "Moved", "Lost", "To spare", "Notes")
	for _, i := range all {
		kind := i.Kind
		if i.Drill {
			kind += " (drill)"
		}
		p.cells(i.PodsLost > 0, Clock(i.At), i.Node, i.Name, kind, i.Action, i.Policy, i.Phase, i.PodsMoved, i.PodsLost,
			Spare(i.SpareSeconds), strings.Join(i.Notes, "; "))
	}
	p.raw("</tbody></table></div>\n")
}

func (p *page) table(header ...string) {
	p.raw(`<div class="scroll"><table><thead><tr>`)
	for _, text := range header {
		p.raw(`<th scope="col">` + html.EscapeString(text) + "</th>")
	}
	p.raw("</tr></thead><tbody>\n")
}

func (p *page) cells(lost bool, values ...any) {
	if lost {
		p.raw(`<tr class="lost">`)
	} else {
		p.raw("<tr>")
	}
	for _, v := range values {
		p.raw("<td>" + html.EscapeString(fmt.Sprint(v)) + "</td>")
	}
	p.raw("</tr>\n")
}

// Clock formats a time for people.
func Clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }

// Spare formats the time to spare; "–" if there is none to speak of.
func Spare(seconds *float64) string {
	if seconds == nil {
		return "–"
	}
	d := time.Duration(math.Round(*seconds)) * time.Second
	if d < 0 {
		return (-d).String() + " late"
	}
	return d.String()
}
