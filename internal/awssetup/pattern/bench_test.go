package pattern

import (
	"encoding/json"
	"testing"
)

// typicalRules are the rules of a typical setup.
func typicalRules(b *testing.B) []*Pattern {
	b.Helper()
	var rules []*Pattern
	for _, source := range []string{
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`,
		`{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["EC2"],"eventTypeCategory":["scheduledChange"]}}`,
		`{"source":["aws.autoscaling"],"detail-type":["EC2 Instance-terminate Lifecycle Action"]}`,
	} {
		rules = append(rules, mustCompile(b, source))
	}
	return rules
}

// Compare the sub-benchmarks with each other: the cost of five rules and the cost of decoding the event.
func BenchmarkFiveRules(b *testing.B) {
	rules := typicalRules(b)
	for _, name := range []string{"spot-interruption-warning", "health-event"} {
		data := []byte(sample(b, name))
		event := mustDecode(b, string(data))
		b.Run(name+"/match", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range rules {
					r.MatchEvent(event)
				}
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/unmarshal", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v any
				if err := json.Unmarshal(data, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
