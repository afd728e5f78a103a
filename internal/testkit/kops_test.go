package testkit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// kopsCluster and kopsInstanceGroup have the fields of kOps' API v1alpha2 that the manifests use
// (kops pkg/apis/kops/v1alpha2). The module k8s.io/kops is not available to this build.
type kopsCluster struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		NodeTerminationHandler *struct {
			Enabled *bool `json:"enabled"`
		} `json:"nodeTerminationHandler"`
		IAM *struct {
			UseServiceAccountExternalPermissions *bool `json:"useServiceAccountExternalPermissions"`
			ServiceAccountExternalPermissions    []struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
				AWS       struct {
					PolicyARNs []string `json:"policyARNs"`
				} `json:"aws"`
			} `json:"serviceAccountExternalPermissions"`
		} `json:"iam"`
		PodIdentityWebhook *struct {
			Enabled bool `json:"enabled"`
		} `json:"podIdentityWebhook"`
		ServiceAccountIssuerDiscovery *struct {
			DiscoveryStore        string `json:"discoveryStore"`
			EnableAWSOIDCProvider bool   `json:"enableAWSOIDCProvider"`
		} `json:"serviceAccountIssuerDiscovery"`
		AdditionalPolicies map[string]string `json:"additionalPolicies"`
	} `json:"spec"`
}

type kopsInstanceGroup struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Role        string   `json:"role"`
		Image       string   `json:"image"`
		MachineType string   `json:"machineType"`
		MinSize     int32    `json:"minSize"`
		MaxSize     int32    `json:"maxSize"`
		Subnets     []string `json:"subnets"`
		WarmPool    struct {
			MinSize             int64 `json:"minSize"`
			MaxSize             int64 `json:"maxSize"`
			EnableLifecycleHook *bool `json:"enableLifecycleHook"`
		} `json:"warmPool"`
		Taints           []string `json:"taints"`
		InstanceMetadata struct {
			HTTPTokens              string `json:"httpTokens"`
			HTTPPutResponseHopLimit int64  `json:"httpPutResponseHopLimit"`
		} `json:"instanceMetadata"`
		FileAssets []struct {
			Name    string `json:"name"`
			Path    string `json:"path"`
			Mode    string `json:"mode"`
			Content string `json:"content"`
		} `json:"fileAssets"`
		AdditionalUserData []struct {
			Name    string `json:"name"`
			Type    string `json:"type"`
			Content string `json:"content"`
		} `json:"additionalUserData"`
	} `json:"spec"`
}

func readKops(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", "kops", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestKopsManifestsFitLifeboat compares the manifests for kOps with the units, the taint, the service
// account and the policy that Lifeboat really has.
func TestKopsManifestsFitLifeboat(t *testing.T) {
	t.Parallel()
	var group kopsInstanceGroup
	readKops(t, "instancegroup.yaml", &group)
	for _, f := range group.Spec.FileAssets {
		if f.Path == "/etc/lifeboat/boot.env" {
			continue
		}
		source := strings.TrimPrefix(f.Path, "/etc/systemd/system/")
		want, err := os.ReadFile(filepath.Join(root(t), "deploy", "systemd", filepath.FromSlash(source)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Path, ".conf") && !strings.Contains(group.Spec.AdditionalUserData[0].Content, string(want)) {
			t.Errorf("the user data does not write %s before nodeup runs", f.Path)
		}
		if diff := cmp.Diff(string(want), f.Content); diff != "" {
			t.Errorf("%s differs from deploy/systemd/%s (-want +got):\n%s", f.Name, source, diff)
		}
	}
	if len(group.Spec.FileAssets) != 4 || *group.Spec.WarmPool.EnableLifecycleHook {
		t.Errorf("%d file assets, kOps' own hook is %v", len(group.Spec.FileAssets), *group.Spec.WarmPool.EnableLifecycleHook)
	}
	if want := []string{v1beta1.TaintNotInService + "=:NoSchedule"}; !cmp.Equal(group.Spec.Taints, want) {
		t.Errorf("taints %q, want %q", group.Spec.Taints, want)
	}

	var cluster kopsCluster
	readKops(t, "cluster.yaml", &cluster)
	account := cluster.Spec.IAM.ServiceAccountExternalPermissions[0]
	if account.Name != iam.ServiceAccount || account.Namespace != iam.Namespace || *cluster.Spec.NodeTerminationHandler.Enabled {
		t.Errorf("service account %s/%s, node termination handler %v", account.Namespace, account.Name, *cluster.Spec.NodeTerminationHandler.Enabled)
	}
	var got []iam.Statement
	if err := json.Unmarshal([]byte(cluster.Spec.AdditionalPolicies["node"]), &got); err != nil {
		t.Fatal(err)
	}
	w, err := awssetup.Desired(cluster.Metadata.Name, "123456789012", "eu-west-1").ForGroups([]string{"workers." + cluster.Metadata.Name})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(iam.Boot(w).Statement, got); diff != "" {
		t.Errorf("additionalPolicies.node differs from aws iam --role boot (-want +got):\n%s", diff)
	}
}

func TestNodeGroupsForKopsDecode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", "kops", "nodegroups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1beta1.Management{"workers.prod.example.com": v1beta1.ManageHooks, "nodes-eu-west-1a.prod.example.com": v1beta1.ManageNothing}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var g v1beta1.NodeGroup
		if err := yaml.UnmarshalStrict(part, &g); err != nil {
			t.Fatal(err)
		}
		if want[g.Spec.AutoScalingGroup] != g.Spec.Management {
			t.Errorf("NodeGroup %s of %s has management %s", g.Name, g.Spec.AutoScalingGroup, g.Spec.Management)
		}
	}
}
