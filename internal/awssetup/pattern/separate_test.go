package pattern

import (
	"slices"
	"testing"
)

// Narrowed patterns match the same notices and are no longer noisy.
func TestQuietKeepsNotices(t *testing.T) {
	for name, pattern := range map[string]string{
		"state changes":                   `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"]}`,
		"everything of EC2":               `{"source":["aws.ec2"]}`,
		"spot beside state changes":       `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance State-change Notification"]}`,
		"EC2 and Health":                  `{"source":["aws.ec2","aws.health"],"account":["210987654321"]}`,
		"Health of some category":         `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"eventTypeCategory":["issue","scheduledChange"]}}`,
		"detail-types by their beginning": `{"source":["aws.ec2"],"detail-type":[{"prefix":"EC2 "}]}`,
	} {
		text, ok := Quiet(pattern)
		if !ok {
			t.Errorf("%s: not narrowed", name)
			continue
		}
		before, after := Lint(mustCompile(t, pattern)), Lint(mustCompile(t, text))
		for _, f := range after.Findings {
			t.Errorf("%s: %s still has %s", name, text, f)
		}
		for _, sample := range before.Matches {
			if lost := !slices.Contains(after.Matches, sample); lost && slices.Contains(noticeSamples(), sample) {
				t.Errorf("%s: %s no longer matches %s", name, text, sample)
			}
		}
	}
	for _, pattern := range []string{
		`{"source":["aws.ec2"],"detail":{"instance-id":["i-1"]}}`,
		`{"source":["aws.ec2"],"$or":[{"region":["eu-west-1"]},{"region":["eu-west-2"]}]}`,
		`{"source":`,
	} {
		if text, ok := Quiet(pattern); ok {
			t.Errorf("%s became %s", pattern, text)
		}
	}
}

// Detail-types that exclude each other become choices.
func TestFixSeparatesDetailTypes(t *testing.T) {
	text, ok := Fix(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}`)
	if !ok {
		t.Fatal("no fix")
	}
	r := Lint(mustCompile(t, text))
	if len(r.Findings) > 0 || !slices.Equal(r.Matches, []string{"instance-state-change", "spot-interruption-warning"}) {
		t.Errorf("%s: %s", text, r)
	}
	text, ok = Fix(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","AWS Health Event"]}`)
	if r := Lint(mustCompile(t, text)); !ok || !slices.Contains(r.Matches, "health-event") || !slices.Contains(r.Matches, "spot-interruption-warning") {
		t.Errorf("another source: %s: %s", text, r)
	}
}
