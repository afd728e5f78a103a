//go:build e2e

package e2e

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
)

// alternatives begin what a fix says after its command.
var alternatives = regexp.MustCompile(`; or |; and |; kubectl |, or |, with the chart | \(Helm 3: | \(docs/|, which `)

// perform runs the command that a fix begins with.
func (p *patient) perform(fix string) {
	p.t.Helper()
	command := fix
	if at := alternatives.FindStringIndex(fix); at != nil {
		command = fix[:at[0]]
	}
	command = strings.Replace(command, "HOST/lifeboatd", "lifeboatd", 1) // the one part that a person fills in
	name, enables := strings.CutPrefix(command, "aws events enable-rule --name ")
	switch {
	case enables:
		_, err := p.events.EnableRule(p.t.Context(), &eventbridge.EnableRuleInput{Name: &name})
		p.must(err)
	case strings.HasPrefix(command, "lifeboat aws setup "):
		p.shell(command + " --yes")
	default:
		p.shell(command)
	}
	p.elect()
}
