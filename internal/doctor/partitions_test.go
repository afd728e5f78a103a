package doctor_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// In each partition, lifeboat aws setup creates wiring without findings, with rules of the cluster and
// with a shared topic, and the doctor finds the region in the URL of a queue.
func TestPartitions(t *testing.T) {
	t.Parallel()
	for region, of := range map[string]struct{ partition, domain string }{
		"eu-west-1":      {"aws", "amazonaws.com"},
		"cn-north-1":     {"aws-cn", "amazonaws.com.cn"},
		"us-gov-west-1":  {"aws-us-gov", "amazonaws.com"},
		"us-iso-east-1":  {"aws-iso", "c2s.ic.gov"},
		"us-isob-east-1": {"aws-iso-b", "sc2s.sgov.gov"},
		"eu-isoe-west-1": {"aws-iso-e", "cloud.adc-e.uk"},
		"us-isof-east-1": {"aws-iso-f", "csp.hci.ic.gov"},
		"eusc-de-east-1": {"aws-eusc", "amazonaws.eu"},
	} {
		if got := doctor.RegionOfQueue("https://sqs." + region + "." + of.domain + "/210987654321/lifeboat-prod"); got != region {
			t.Errorf("the region of a queue in %s is %q", region, got)
		}
		server, url := emulatortest.Serve(t, emulator.Options{Region: region})
		cfg := aws.Config{Region: region, BaseEndpoint: &url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")}
		own := awssetup.Desired("prod", server.Account(), region)
		shared, err := awssetup.Desired("test", server.Account(), region).Shared("lifeboat-shared")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []awssetup.Wiring{own, shared} {
			if _, err := awssetup.Apply(t.Context(), awssetup.NewClients(cfg), w); err != nil {
				t.Fatalf("%s: %v", region, err)
			}
			if arn := w.QueueARN(); !strings.HasPrefix(arn, "arn:"+of.partition+":sqs:"+region+":") {
				t.Errorf("%s: the queue is %s", region, arn)
			}
			read, err := doctor.ReadAccount(t.Context(), doctor.ClientsFor(cfg), doctor.Target{Desired: awssetup.Desired(w.Cluster, w.Account, region)})
			if err != nil {
				t.Fatalf("%s: %v", region, err)
			}
			for _, f := range doctor.Run(read, awssetup.Desired(w.Cluster, w.Account, region), doctor.Cluster{}) {
				if f.ID != "kind-covered-twice" {
					t.Errorf("%s, cluster %s: %s %s: %s", region, w.Cluster, f.ID, f.Object, f.Problem)
				}
			}
		}
	}
}
