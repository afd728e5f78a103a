package autoscaling

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestReply reads a reply as Auto Scaling writes it (EC2 Auto Scaling API
// Reference, the sample of DescribeAutoScalingGroups) into notices.
func TestReply(t *testing.T) {
	reply, err := os.ReadFile(filepath.Join("testdata", "groups.xml"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write(reply)
	}))
	t.Cleanup(server.Close)
	api := NewAPI(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		})})
	rows, err := api.groups(t.Context(), []string{"workers-a"})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d groups, %v", len(rows), err)
	}
	var notices []notice.Notice
	for _, in := range rows[0].Instances {
		m := member{aws.ToString(rows[0].AutoScalingGroupName), aws.ToString(in.InstanceId), string(in.LifecycleState)}
		if n, ok := m.read(now, 5*time.Minute); ok {
			notices = append(notices, n)
		}
	}
	got, err := yaml.Marshal(notices)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "groups.golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got), write it anew with -update:\n%s", diff)
	}
}
