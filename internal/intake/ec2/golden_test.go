package ec2

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var update = flag.Bool("update", false, "write the golden files")

// replying is an API whose every response is that file.
func replying(t *testing.T, file string) API {
	t.Helper()
	reply, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		_, _ = w.Write(reply)
	}))
	t.Cleanup(server.Close)
	return NewAPI(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		})})
}

// TestReplies decodes responses of EC2 (EC2 API Reference, the samples of each
// action) into notices.
func TestReplies(t *testing.T) {
	golden(t, "instance-status", func(api API) ([]notice.Notice, error) {
		rows, err := api.status(t.Context(), where("event.code", "system-reboot"))
		var notices []notice.Notice
		for i := range rows {
			events, err := readEvents(&rows[i])
			if err != nil {
				return nil, err
			}
			notices = append(notices, events...)
			for _, c := range checksOf(&rows[i]) {
				if c.status == statusImpaired {
					notices = append(notices, impaired(aws.ToString(rows[i].InstanceId), c))
				}
			}
		}
		return notices, err
	})
	golden(t, "spot-requests", func(api API) ([]notice.Notice, error) {
		rows, err := api.spotRequests(t.Context())
		var notices []notice.Notice
		for i := range rows {
			if n, ok := readSpotRequest(&rows[i], now); ok {
				notices = append(notices, n)
			}
		}
		return notices, err
	})
}

func golden(t *testing.T, name string, read func(API) ([]notice.Notice, error)) {
	t.Helper()
	notices, err := read(replying(t, name+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(notices)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".golden")
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
		t.Errorf("reading %s (-want +got), update it with -update:\n%s", name, diff)
	}
}
