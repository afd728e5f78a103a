package ec2

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLaunchAssignsIDsAsEC2Does(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		made, err := w.Launch(LaunchInput{ImageID: "ami-1", Type: "c5.large", Zone: "eu-west-1c", Min: 1, Max: 2, Spot: &SpotOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		if len(made) != 2 || made[0].ID == made[1].ID || made[0].ReservationID != made[1].ReservationID {
			t.Fatalf("made %v", made)
		}
		for name, c := range map[string][2]string{
			"id":      {`^i-[0-9a-f]{17}$`, made[0].ID},
			"request": {`^sir-[a-z0-9]{8}$`, made[0].SpotRequestID},
			"subnet":  {`^subnet-[0-9a-f]{17}$`, made[0].SubnetID},
			"name":    {`^ip-10-0-128-11\.eu-west-1\.compute\.internal$`, made[1].PrivateDNSName},
		} {
			if !regexp.MustCompile(c[0]).MatchString(c[1]) {
				t.Errorf("%s is %q", name, c[1])
			}
		}
		same(t, "address", made[1].PrivateIP, "10.0.128.11")
	})
}

func TestLaunchRejectsInvalidRequests(t *testing.T) {
	good := func(change func(*LaunchInput)) LaunchInput {
		in := LaunchInput{ImageID: "ami-1", Min: 1, Max: 1}
		change(&in)
		return in
	}
	for name, c := range map[string]struct {
		input LaunchInput
		code  string
	}{
		"no image":             {good(func(in *LaunchInput) { in.ImageID = "" }), "MissingParameter"},
		"a wrong image":        {good(func(in *LaunchInput) { in.ImageID = "x" }), "InvalidAMIID.Malformed"},
		"an unknown type":      {good(func(in *LaunchInput) { in.Type = "m9.huge" }), "InvalidParameterValue"},
		"no count":             {good(func(in *LaunchInput) { in.Min = 0 }), "InvalidParameterValue"},
		"max below min":        {good(func(in *LaunchInput) { in.Min = 2 }), "InvalidParameterValue"},
		"too many":             {good(func(in *LaunchInput) { in.Max = 1001 }), "InstanceLimitExceeded"},
		"an unknown subnet":    {good(func(in *LaunchInput) { in.SubnetID = "subnet-0" }), "InvalidSubnetID.NotFound"},
		"another region":       {good(func(in *LaunchInput) { in.Zone = "us-east-1a" }), "InvalidParameterValue"},
		"one-time and stop":    {good(func(in *LaunchInput) { in.Spot = &SpotOptions{Behaviour: Stop} }), "InvalidParameterCombination"},
		"an unknown group":     {good(func(in *LaunchInput) { in.SecurityGroupIDs = []string{"sg-0"} }), "InvalidGroup.NotFound"},
		"not base64":           {good(func(in *LaunchInput) { in.UserData = "#!/bin/sh" }), "InvalidUserData.Malformed"},
		"tags for no request":  {good(func(in *LaunchInput) { in.RequestTags = map[string]string{"a": ""} }), "InvalidParameterValue"},
		"another architecture": {good(func(in *LaunchInput) { in.ImageID = ImageID(ARM) }), "InvalidParameterValue"},
		"a reserved tag":       {good(func(in *LaunchInput) { in.Tags = map[string]string{"aws:x": ""} }), "InvalidParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Timing{}, func(t *testing.T, w *world) {
				_, err := w.Launch(c.input)
				wantCode(t, err, c.code)
				same(t, "instances", len(w.Instances()), 0)
			})
		})
	}
}

func TestClientTokenMakesLaunchIdempotent(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		input := LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, ClientToken: "once", Tags: map[string]string{"a": "b"}}
		first, err := w.Launch(input)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.Launch(input)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "id", second[0].ID, first[0].ID)
		input.Type = "c5.large"
		_, err = w.Launch(input)
		wantCode(t, err, "IdempotentParameterMismatch")
	})
}

func TestFilters(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		launch := func(input LaunchInput) string {
			input.ImageID, input.Min, input.Max = "ami-1", 1, 1
			made, err := w.Launch(input)
			if err != nil {
				t.Fatal(err)
			}
			return made[0].ID
		}
		names := map[string]string{
			launch(LaunchInput{Tags: map[string]string{"Name": "web*1", "team": "a"}, Zone: "eu-west-1a"}):                 "web",
			launch(LaunchInput{Tags: map[string]string{"Name": "db", "karpenter.sh/nodepool": "x"}, Spot: &SpotOptions{}}): "db",
		}
		gone := launch(LaunchInput{Zone: "eu-west-1b"})
		names[gone] = "gone"
		if _, err := w.Terminate([]string{gone}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		for spec, want := range map[string]string{
			"":                                       "web db gone",
			"instance-state-name=running":            "web db",
			"instance-state-name=running,term*":      "web db gone",
			"instance-lifecycle=spot":                "db",
			"tag:Name=web*":                          "web",
			`tag:Name=web\*1`:                        "web",
			`tag:Name=web\*2`:                        "",
			"tag:Name=d?":                            "db",
			"tag:Name=?":                             "",
			"tag-key=karpenter.sh/*":                 "db",
			"tag-value=a":                            "web",
			"availability-zone=eu-west-1b":           "gone",
			"private-dns-name=ip-10-0-0-*":           "web db",
			"private-dns-name=ip-10-0-64-*":          "", // a terminated one shows no name
			"instance-state-name=running;tag:team=a": "web",
		} {
			list, err := w.Describe(nil, parseFilters(spec))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, in := range list {
				got = append(got, names[in.ID])
			}
			same(t, "found with "+spec, strings.Join(got, " "), want)
		}
		_, err := w.Describe(nil, parseFilters("no-such-filter=x"))
		wantCode(t, err, "InvalidParameterValue")
		_, err = w.Describe([]string{"i-0123456789abcdef0"}, nil)
		wantCode(t, err, "InvalidInstanceID.NotFound")
		_, err = w.Describe([]string{gone, "i-zz"}, nil)
		wantCode(t, err, "InvalidInstanceID.Malformed")
	})
}

func parseFilters(spec string) []Filter {
	var out []Filter
	for part := range strings.SplitSeq(spec, ";") {
		if name, values, ok := strings.Cut(part, "="); ok {
			out = append(out, Filter{name, strings.Split(values, ",")})
		}
	}
	return out
}

func TestMatchesAgreesWithARegularExpression(t *testing.T) {
	var texts []string
	for n := range 3 * 3 * 3 * 3 {
		texts = append(texts, strings.Trim(string([]byte{"ab-"[n%3], "ab-"[n/3%3], "ab-"[n/9%3], "ab-"[n/27]}), "-"))
	}
	for _, pattern := range []string{"*", "a*", "*a", "a*b", "?", "a?b", "**", "*a*b*", "ab", "a*a?", ""} {
		expr := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".").Replace(pattern) + "$")
		for _, text := range texts {
			if got, want := matches(pattern, text), expr.MatchString(text); got != want {
				t.Errorf("matches(%q, %q) = %v", pattern, text, got)
			}
		}
	}
}

func TestTags(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		request := w.request(t, id).ID
		if err := w.CreateTags([]string{id, request}, map[string]string{"a": "1", "b": "2"}); err != nil {
			t.Fatal(err)
		}
		one := "1"
		if err := w.DeleteTags([]string{id}, map[string]*string{"a": &one, "b": &one}); err != nil {
			t.Fatal(err)
		}
		own := func() []Tag {
			return slices.DeleteFunc(w.Tags(), func(tag Tag) bool { return tag.ResourceID != id && tag.ResourceID != request })
		}
		same(t, "tags", own(), []Tag{
			{id, "instance", "b", "2"},
			{request, "spot-instances-request", "a", "1"}, {request, "spot-instances-request", "b", "2"},
		})
		if err := w.DeleteTags([]string{id, request}, nil); err != nil {
			t.Fatal(err)
		}
		same(t, "tags after deleting all", own(), []Tag{})
		many := map[string]string{}
		for n := range maxTags + 1 {
			many[fmt.Sprint(n)] = ""
		}
		wantCode(t, w.CreateTags([]string{id}, many), "TagLimitExceeded")
		wantCode(t, w.CreateTags([]string{id, "i-0123456789abcdef0"}, map[string]string{"x": ""}), "InvalidInstanceID.NotFound")
		same(t, "tags after refusals", own(), []Tag{})
	})
}

func TestStatusAndMaintenance(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, nil)
		if err := w.SetHealth(id, Health{System: StatusImpaired}); err != nil {
			t.Fatal(err)
		}
		event, err := w.ScheduleMaintenance(id, Maintenance{Code: "instance-stop", Description: "retirement"})
		if err != nil {
			t.Fatal(err)
		}
		for spec, want := range map[string]int{
			"system-status.status=impaired": 1, "instance-status.status=ok": 1, "instance-status.reachability=passed": 1,
			"event.code=instance-stop": 1, "event.code=system-reboot": 0, "instance-status.status=impaired": 0,
		} {
			got, err := w.DescribeStatus(nil, parseFilters(spec), false)
			if err != nil || len(got) != want {
				t.Errorf("%s: %d found, want %d (%v)", spec, len(got), want, err)
			}
		}
		if err := w.EndMaintenance(id, event, true); err != nil {
			t.Fatal(err)
		}
		in, _ := w.Instance(id)
		same(t, "description", in.Maintenance[0].Description, "[Completed] retirement")
		if _, err := w.Terminate([]string{id}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if got, _ := w.DescribeStatus(nil, nil, false); len(got) != 0 {
			t.Error("a terminated instance has a status without IncludeAllInstances")
		}
		if got, _ := w.DescribeStatus(nil, nil, true); len(got) != 1 {
			t.Error("a terminated instance has no status with IncludeAllInstances")
		}
	})
}

func TestCancelledRequestKeepsInstanceRunning(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		id := w.launch(t, &SpotOptions{})
		if _, err := w.CancelSpotRequests([]string{w.request(t, id).ID}); err != nil {
			t.Fatal(err)
		}
		r, in := w.request(t, id), w.Instances()[0]
		same(t, "request", []string{r.State, r.Status.Code, string(in.State)},
			[]string{"cancelled", "request-canceled-and-instance-running", "running"})
		_, err := w.CancelSpotRequests([]string{"sir-none"})
		wantCode(t, err, "InvalidSpotInstanceRequestID.NotFound")
	})
}

func TestPrivateNames(t *testing.T) {
	same(t, "us-east-1", privateName("10.0.1.23", "us-east-1"), "ip-10-0-1-23.ec2.internal")
	same(t, "us-east-2", privateName("10.0.1.23", "us-east-2"), "ip-10-0-1-23.us-east-2.compute.internal")
}

func TestZoneIDs(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "euw1", "us-east-1": "use1", "ap-southeast-2": "apse2", "ap-northeast-1": "apne1",
		"us-gov-west-1": "usgw1", "eu-north-1": "eun1",
	} {
		same(t, region, zonePrefix(region), want)
	}
}

func TestSubscriberMayCallBackAndUnsubscribe(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		var seen []string
		var cancel func()
		cancel = w.Subscribe(func(c Change) {
			seen = append(seen, string(c.What))
			if c.What == Booted {
				if _, err := w.Terminate([]string{c.Instance.ID}); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
		w.launch(t, nil)
		w.pass(time.Minute)
		same(t, "seen", seen, []string{"Launched", "Running"})
		same(t, "state", w.Instances()[0].State, Terminated)
	})
}

func TestConcurrentCalls(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				made, err := w.Launch(LaunchInput{ImageID: "ami-1", Min: 1, Max: 10, Spot: &SpotOptions{}})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				for _, in := range made {
					if err := w.Interrupt([]string{in.ID}, InterruptOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.pass(3 * time.Minute)
		addresses := map[string]bool{}
		for _, in := range w.Instances() {
			addresses[in.PrivateIP] = true
			if in.State != Terminated {
				t.Errorf("%s is %s", in.ID, in.State)
			}
		}
		same(t, "addresses", len(addresses), 80)
		same(t, "events", len(w.events), 80*5) // pending, running, warning, shutting-down, terminated
	})
}
