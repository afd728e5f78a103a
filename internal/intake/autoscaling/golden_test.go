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
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var update = flag.Bool("update", false, "write the golden files")

// TestReply decodes a response of Auto Scaling (EC2 Auto Scaling API Reference,
// the sample of DescribeAutoScalingGroups) into notices.
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
	api := groupcache.NewAPI(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		})})
	api.Hooks = func(context.Context, *awsas.DescribeLifecycleHooksInput, ...func(*awsas.Options)) (*awsas.DescribeLifecycleHooksOutput, error) {
		return &awsas.DescribeLifecycleHooksOutput{}, nil
	}
	groups, err := groupcache.New(groupcache.Options{API: api, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	group, ok, err := groups.Look(t.Context(), "workers-a")
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	var notices []notice.Notice
	for _, in := range group.Members {
		m := member{group.Name, in.InstanceID, in.State, false, ""}
		if n, ok := m.read(group.At, 5*time.Minute); ok {
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
		t.Errorf("(-want +got), update it with -update:\n%s", diff)
	}
}
