package drill

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestBodyIsWhatEventBridgeDelivers(t *testing.T) {
	n := Notice{
		Place:  Place{Account: "210987654321", Region: "eu-west-1", Partition: "aws"},
		Target: Target{InstanceID: "i-0a1b2c3d4e5f60718", Zone: "eu-west-1b"},
		Time:   time.Date(2026, 5, 11, 10, 14, 2, 345e6, time.FixedZone("CEST", 7200)),
		ID:     "3f1c9a52-6d0b-4f0e-9d0a-7b6f0c2f4f11",
	}
	head := `{"version":"0","id":"3f1c9a52-6d0b-4f0e-9d0a-7b6f0c2f4f11","detail-type":"`
	middle := `","source":"aws.ec2","account":"210987654321","time":"2026-05-11T08:14:02Z","region":"eu-west-1",`
	for _, c := range []struct {
		name, kind, zone, want string
	}{
		{"spot interruption", notice.KindSpotInterruption, "eu-west-1b",
			head + "EC2 Spot Instance Interruption Warning" + middle + `"resources":["arn:aws:ec2:eu-west-1b:instance/i-0a1b2c3d4e5f60718"],"detail":{"instance-id":"i-0a1b2c3d4e5f60718","instance-action":"terminate"}}`},
		{"rebalance recommendation, zone unknown", notice.KindRebalanceRecommendation, "",
			head + "EC2 Instance Rebalance Recommendation" + middle + `"resources":["arn:aws:ec2:eu-west-1a:instance/i-0a1b2c3d4e5f60718"],"detail":{"instance-id":"i-0a1b2c3d4e5f60718"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.Kind, n.Target.Zone = c.kind, c.zone
			got, err := n.Body()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	n.Kind = notice.KindInstanceStatus
	if _, err := n.Body(); err == nil {
		t.Error("a kind that cannot be written was written")
	}
}

func TestRegionOf(t *testing.T) {
	for zone, want := range map[string]string{
		"us-east-1a": "us-east-1", "eu-west-1b": "eu-west-1", "us-gov-west-1a": "us-gov-west-1",
		"us-west-2-lax-1a": "us-west-2", "cn-north-1b": "cn-north-1", "": "", "rack7": "",
	} {
		if got := RegionOf(zone); got != want {
			t.Errorf("RegionOf(%q) = %q, want %q", zone, got, want)
		}
	}
}

func TestISODuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		2 * time.Minute: "PT2M", 2*time.Minute + 15*time.Second: "PT2M15S", 15 * time.Minute: "PT15M",
	} {
		if got := isoDuration(d); got != want {
			t.Errorf("isoDuration(%v) = %q, want %q", d, got, want)
		}
	}
}
