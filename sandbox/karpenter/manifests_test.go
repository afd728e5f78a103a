package karpenter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefaults(t *testing.T) {
	nodeClass, nodePool, err := Defaults(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got := nodeClass.GetKind() + "/" + nodeClass.GetName() + " " + nodePool.GetKind() + "/" + nodePool.GetName(); got != "EC2NodeClass/default NodePool/default" {
		t.Errorf("got %s", got)
	}
	role, _, err := unstructured.NestedString(nodeClass.Object, "spec", "role")
	if err != nil || role != NodeRole {
		t.Errorf("the role is %q (%v), want the one that the sandbox makes", role, err)
	}
	disruption, _, err := unstructured.NestedStringMap(nodePool.Object, "spec", "disruption")
	want := map[string]string{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5s"}
	if diff := cmp.Diff(want, disruption); err != nil || diff != "" {
		t.Errorf("disruption (-want +got), %v:\n%s", err, diff)
	}
	_, again, err := Defaults(0)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(again.Object, "spec", "disruption", "consolidateAfter"); got != "30s" {
		t.Errorf("default consolidateAfter is %q: one caller changed another's", got)
	}
}

func TestCRDsComeFromProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "karpenter")
	script := "#!/bin/sh\n[ \"$1\" = crds ] || exit 1\nprintf '%s\\n' '---' '{kind: CustomResourceDefinition, metadata: {name: a}}' '' '---' '---' '{kind: CustomResourceDefinition, metadata: {name: b}}'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	crds, err := CRDs(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range crds {
		names = append(names, crd.GetName())
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("CRDs are %q", names)
	}
	if _, err := CRDs(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "reading the CRDs of Karpenter") {
		t.Errorf("of no program: %v", err)
	}
}

func TestKarpenterEnvironmentIsIsolated(t *testing.T) {
	t.Setenv("AWS_PROFILE", "mine")
	t.Setenv("CLUSTER_NAME", "production")
	t.Setenv("INTERRUPTION_QUEUE", "production")
	t.Setenv("HTTP_PROXY", "http://proxy")
	t.Setenv("HOME", "/home/me")
	o := Options{
		Kubeconfig: "/k", Cluster: "sandbox", Endpoint: "https://api", AWSEndpoint: "http://aws", Region: "us-east-1",
		AccessKeyID: "id", SecretAccessKey: "secret", MetricsPort: "1", HealthPort: "2",
	}
	env := environment(o)
	for _, want := range []string{
		"KUBECONFIG=/k", "CLUSTER_NAME=sandbox", "CLUSTER_ENDPOINT=https://api", "AWS_ENDPOINT_URL=http://aws", "AWS_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "DISABLE_LEADER_ELECTION=true", "METRICS_PORT=1", "HEALTH_PROBE_PORT=2", "HOME=/home/me",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name == "AWS_PROFILE" || name == "HTTP_PROXY" || name == "INTERRUPTION_QUEUE" || value == "production" {
			t.Errorf("%s came through", kv)
		}
	}
	o.Queue = "karpenter"
	if !slices.Contains(environment(o), "INTERRUPTION_QUEUE=karpenter") {
		t.Error("the queue's name does not reach it")
	}
}
