package eks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/eks"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// get asks EKS as its clients do, and decodes the answer.
func get(t *testing.T, url, path string) (status int, out map[string]any) {
	t.Helper()
	status, body := emulatortest.Call{Service: "eks", Path: path}.Do(t, url)
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return status, out
}

func TestDescribeCluster(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	server.States.EKS.SetCluster(eks.Cluster{
		Name: "prod", Version: "1.36", Endpoint: "https://127.0.0.1:6443", CA: []byte("PEM"), ServiceCIDR: "10.96.0.0/16",
		Tags: map[string]string{"team": "a"},
	})
	status, out := get(t, url, "/clusters/prod")
	cluster, _ := out["cluster"].(map[string]any)
	if created, ok := cluster["createdAt"].(float64); !ok || created < 1e9 {
		t.Errorf("createdAt = %v, want seconds since 1970", cluster["createdAt"])
	}
	delete(cluster, "createdAt")
	want := map[string]any{
		"name": "prod", "arn": "arn:aws:eks:us-east-1:123456789012:cluster/prod", "version": "1.36", "platformVersion": "eks.1",
		"endpoint": "https://127.0.0.1:6443", "status": "ACTIVE", "certificateAuthority": map[string]any{"data": "UEVN"},
		"kubernetesNetworkConfig": map[string]any{"serviceIpv4Cidr": "10.96.0.0/16", "ipFamily": "ipv4"},
		"resourcesVpcConfig": map[string]any{"subnetIds": []any{}, "securityGroupIds": []any{}, "endpointPublicAccess": true,
			"endpointPrivateAccess": false, "publicAccessCidrs": []any{"0.0.0.0/0"}},
		"accessConfig": map[string]any{"authenticationMode": "API_AND_CONFIG_MAP"}, "tags": map[string]any{"team": "a"},
	}
	if diff := cmp.Diff(want, cluster); diff != "" || status != 200 {
		t.Errorf("status %d (-want +got):\n%s", status, diff)
	}

	status, out = get(t, url, "/clusters/none")
	wantErr := map[string]any{"__type": "ResourceNotFoundException", "message": "No cluster found for name: none."}
	if diff := cmp.Diff(wantErr, out); diff != "" || status != 404 {
		t.Errorf("status %d (-want +got):\n%s", status, diff)
	}
	server.States.EKS.RemoveCluster("prod")
	if status, _ := get(t, url, "/clusters/prod"); status != 404 {
		t.Errorf("a cluster that was removed: status %d", status)
	}
}

func TestListClusters(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	for i := range 3 {
		server.States.EKS.SetCluster(eks.Cluster{Name: fmt.Sprint("c", i)})
	}
	_, first := get(t, url, "/clusters?maxResults=2")
	if diff := cmp.Diff([]any{"c0", "c1"}, first["clusters"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, second := get(t, url, fmt.Sprint("/clusters?nextToken=", first["nextToken"]))
	if diff := cmp.Diff(map[string]any{"clusters": []any{"c2"}}, second); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, query := range []string{"maxResults=0", "maxResults=x", "nextToken=x"} {
		if status, out := get(t, url, "/clusters?"+query); status != 400 || out["__type"] != "InvalidParameterException" {
			t.Errorf("%s: status %d: %v", query, status, out)
		}
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	server.States.EKS.SetCluster(eks.Cluster{Name: "prod"})
	server.Gate.Deny("eks", "DescribeCluster")
	status, out := get(t, url, "/clusters/prod")
	if message := fmt.Sprint(out["message"]); status != 403 || !strings.Contains(message, "eks:DescribeCluster on resource: arn:aws:eks:us-east-1:123456789012:cluster/prod") {
		t.Errorf("denied: status %d: %v", status, out)
	}
	server.Gate.Throttle("eks", "DescribeCluster", 1)
	if status, _ := get(t, url, "/clusters/prod"); status != 429 {
		t.Errorf("throttled: status %d", status)
	}
	if status, _ := get(t, url, "/clusters/prod"); status != 200 {
		t.Errorf("after the one: status %d", status)
	}
}
