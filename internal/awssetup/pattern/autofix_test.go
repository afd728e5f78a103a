package pattern

import "testing"

func TestFix(t *testing.T) {
	const spot = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`
	for _, c := range []struct{ name, text, want string }{
		{"a misspelt detail-type", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`, spot},
		{"another misspelling", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption"]}`, spot},
		{"beside the source of probes", `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Interruption Warning"]}`,
			`{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`},
		{"a misspelt key", `{"source":["aws.ec2"],"detailType":["EC2 Spot Instance Interruption Warning"]}`, spot},
		{"key and name misspelt", `{"source":["aws.ec2"],"DetailType":["EC2 Spot Interruption Warning"]}`, spot},
		{"a source without its prefix", `{"source":["ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, spot},
		{"scalars", `{"source":"aws.ec2","detail-type":"EC2 Spot Interruption Warning"}`,
			`{"detail-type":["EC2 Spot Instance Interruption Warning"],"source":["aws.ec2"]}`},
		{"a category in another case", `{"source":["aws.health"],"detail":{"service":["EC2"],"eventTypeCategory":["ScheduledChange","Issue"]}}`,
			`{"source":["aws.health"],"detail":{"service":["EC2"],"eventTypeCategory":["scheduledChange","issue"]}}`},
		{"a number for a string", `{"source":["aws.health"],"detail":{"service":["EC2"],"page":[1]}}`,
			`{"source":["aws.health"],"detail":{"service":["EC2"],"page":["1"]}}`},
		{"a boolean for a string", `{"source":["aws.health"],"detail":{"service":["EC2"],"backupEvent":[false]}}`,
			`{"source":["aws.health"],"detail":{"service":["EC2"],"backupEvent":["false"]}}`},
		{"upper-case states", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["STOPPING"]}}`,
			`{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}`},
		{"nothing to fix", spot, ""},
		{"no possible fix", `{"source":["aws.ec2"],"detail-type":["Hello"]}`, ""},
		{"no JSON", `{`, ""},
		{"not an object", `[1]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := Fix(c.text)
			if ok != (c.want != "") || ok && got != c.want {
				t.Errorf("Fix = %q, %v, want %q", got, ok, c.want)
			}
		})
	}
}

func TestCouldMatch(t *testing.T) {
	const spot = `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","account":"1","region":"r",
		"resources":["arn:aws:ec2:eu-west-1b:instance/i-1"],"detail":{"instance-id":"i-1","instance-action":"stop"}}`
	for _, c := range []struct {
		name, pattern string
		fixed         []string
		want          bool
	}{
		{"exactly", `{"source":["aws.ec2"]}`, nil, true},
		{"another source", `{"source":["aws.health"]}`, nil, false},
		{"another detail-type", `{"detail-type":["EC2 Instance Rebalance Recommendation"]}`, nil, false},
		{"another instance", `{"detail":{"instance-id":["i-2"]}}`, nil, true},
		{"another instance, when it is fixed", `{"detail":{"instance-id":["i-2"]}}`, []string{"detail.instance-id"}, false},
		{"another action", `{"detail":{"instance-action":["terminate"]}}`, nil, true},
		{"another action, when it is fixed", `{"detail":{"instance-action":["terminate"]}}`, []string{"detail.instance-action"}, false},
		{"an unknown action", `{"detail":{"instance-action":["explode"]}}`, nil, false},
		{"of the wrong type", `{"detail":{"instance-id":[1]}}`, nil, false},
		{"a missing field", `{"detail":{"state":["stopping"]}}`, nil, false},
		{"a field that must be absent", `{"detail":{"state":[{"exists":false}]}}`, nil, true},
		{"a fixed field that must be absent", `{"detail":{"instance-action":[{"exists":false}]}}`, []string{"detail.instance-action"}, false},
		{"an impossible resource", `{"resources":[{"prefix":"arn:aws:ec2:eu-west-1:1"}]}`, nil, false},
		{"one of two", `{"$or":[{"source":["x"]},{"detail":{"instance-action":["stop"]}}]}`, []string{"detail.instance-action"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile([]byte(c.pattern))
			if err != nil {
				t.Fatal(err)
			}
			e, err := Decode([]byte(spot))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.CouldMatch(e, c.fixed...); got != c.want {
				t.Errorf("CouldMatch = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCouldMatchWithoutAnyKnownKind(t *testing.T) {
	p, err := Compile([]byte(`{"source":["mine"],"detail":{"a":["x"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := Decode([]byte(`{"source":"mine","detail-type":"own","detail":{"a":"y"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !p.CouldMatch(e) || p.CouldMatch(e, "detail.a") {
		t.Error("an unknown event must be matched by its own fields")
	}
}
