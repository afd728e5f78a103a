package drill

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var issued = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// example returns a notice of a kind about an instance.
func example(kind string) Notice {
	return Notice{
		Place: Place{Account: "210987654321", Region: "eu-west-1", Partition: "aws"}, Kind: kind,
		Target: Target{InstanceID: "i-0a1b2c3d4e5f60718", Zone: "eu-west-1b", Reservation: "cr-0a1b2c3d4e5f60718"},
		Time:   issued, ID: NewID(), Drill: "d-1", Begins: issued.Add(time.Hour),
	}
}

func TestEveryKindCanBeSent(t *testing.T) {
	for _, name := range notice.Kinds() {
		_, err := FindKind(name)
		if (err == nil) == (name == notice.KindInstanceStatus) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindKind(t *testing.T) {
	for word, want := range map[string]string{
		"spot": notice.KindSpotInterruption, "SpotInterruption": notice.KindSpotInterruption, "spot-interruption": notice.KindSpotInterruption,
		"rebalance": notice.KindRebalanceRecommendation, "scheduled-change": notice.KindScheduledChange, "ScheduledChange": notice.KindScheduledChange,
		"state-change": notice.KindInstanceStateChange, "state": notice.KindInstanceStateChange, "health-issue": notice.KindHealthIssue,
		"autoscaling": notice.KindAutoScalingTermination, "capacity-block": notice.KindCapacityBlockExpiration,
		"capacity-reservation": notice.KindCapacityReservationInterruption, "lifecycle-failure": notice.KindLifecycleActionFailure,
	} {
		if k, err := FindKind(word); err != nil || k.Name != want {
			t.Errorf("%s is %s, %v; want %s", word, k.Name, err, want)
		}
	}
	for word, want := range map[string]string{
		"spott":           "write one of spot, rebalance,",
		"instance-status": "Lifeboat reads it from EC2",
	} {
		if _, err := FindKind(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", word, err, want)
		}
	}
}

// The samples of package pattern are AWS's. Every field of a drill's message except
// the mark must exist there with the same type.
func TestBodiesHaveTheFieldsOfAWSSamples(t *testing.T) {
	samples := map[string]string{
		notice.KindSpotInterruption: "spot-interruption-warning", notice.KindRebalanceRecommendation: "rebalance-recommendation",
		notice.KindInstanceStateChange: "instance-state-change", notice.KindScheduledChange: "health-event", notice.KindHealthIssue: "health-event",
		notice.KindCapacityReservationInterruption: "capacity-reservation-interruption", notice.KindCapacityBlockExpiration: "capacity-block-expiration",
		notice.KindAutoScalingTermination: "terminate-lifecycle-action", notice.KindLifecycleActionFailure: "cloudtrail-api-call",
	}
	bySample := map[string]map[string]string{}
	for _, s := range pattern.Samples() {
		bySample[s.Name] = fields(t, s.JSON)
	}
	for _, k := range Kinds() {
		want, ok := bySample[samples[k.Name]]
		if !ok {
			t.Fatalf("%s has no sample", k.Name)
		}
		body, err := example(k.Name).Body()
		if err != nil {
			t.Fatal(err)
		}
		got := fields(t, []byte(body))
		if got["detail.lifeboat-drill"] != "string" {
			t.Errorf("%s has no mark: %s", k.Name, body)
		}
		delete(got, "detail.lifeboat-drill")
		for path, typ := range got {
			if want[path] != typ {
				t.Errorf("%s: %s is a %s; in AWS's sample it is a %q", k.Name, path, typ, want[path])
			}
		}
		for path := range want {
			if _, envelope := got[path]; !envelope && !strings.HasPrefix(path, "detail.") {
				t.Errorf("%s lacks %s", k.Name, path)
			}
		}
	}
}

// fields returns the types of all fields, by path.
func fields(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	gather(all, "", root)
	return all
}

func gather(all map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, inner := range v {
			gather(all, strings.TrimPrefix(path+"."+k, "."), inner)
		}
	case []any:
		all[path] = "list"
		for _, inner := range v {
			gather(all, path+"[]", inner)
		}
	default:
		all[path] = fmt.Sprintf("%T", v)
	}
}

// Drill messages must pass the rules. Otherwise a drill would rehearse an impossible
// event.
func TestRulesMatchEveryKind(t *testing.T) {
	for _, k := range Kinds() {
		body, err := example(k.Name).Body()
		if err != nil {
			t.Fatal(err)
		}
		event, err := pattern.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		var through []string
		for _, rule := range awssetup.Desired("prod", "210987654321", "eu-west-1").Rules {
			p, err := pattern.Compile([]byte(rule.Pattern))
			if err != nil {
				t.Fatal(err)
			}
			if p.MatchEvent(event) {
				through = append(through, rule.Name)
			}
		}
		if len(through) != 1 {
			t.Errorf("%s goes through %v, want one rule: %s", k.Name, through, body)
		}
	}
}
