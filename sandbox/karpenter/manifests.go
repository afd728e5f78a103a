package karpenter

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// NodeRole is the IAM role of the nodes in Defaults. It must exist.
const NodeRole = "KarpenterNodeRole-sandbox"

// User is the ServiceAccount of Karpenter's chart, in the namespace that its guide names.
const User = "system:serviceaccount:kube-system:karpenter"

//go:embed manifests/default.yaml
var defaults []byte

// roles has a file for each minor version, which `helm template` wrote from Karpenter's chart.
//
//go:embed manifests/rbac-*.yaml
var roles embed.FS

// RBAC returns the roles of the chart of a Karpenter version, such as v1.14.1, and their bindings to
// User.
func RBAC(version string) ([]*unstructured.Unstructured, error) {
	text, err := roles.ReadFile("manifests/rbac-" + version[:max(strings.LastIndexByte(version, '.'), 0)] + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("the roles of Karpenter %s are not in sandbox/karpenter/manifests: run TestKarpenterHasRolesOfItsChart with -update: %w", version, err)
	}
	return read(text)
}

// CRDs returns the CRDs of a Karpenter, as its program prints them.
func CRDs(ctx context.Context, binary string) ([]*unstructured.Unstructured, error) {
	text, err := exec.CommandContext(ctx, binary, "crds").Output()
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of Karpenter: %w", err)
	}
	return read(text)
}

// Defaults returns an EC2NodeClass and a NodePool, both called "default": spot instances of the
// categories c, m and r. Karpenter removes an empty node consolidateAfter after its last pod; 0 is
// 30 s.
func Defaults(consolidateAfter time.Duration) (nodeClass, nodePool *unstructured.Unstructured, err error) {
	objects, err := read(defaults)
	if err != nil {
		return nil, nil, err
	}
	nodeClass, nodePool = objects[0], objects[1]
	if consolidateAfter != 0 {
		err = unstructured.SetNestedField(nodePool.Object, consolidateAfter.String(), "spec", "disruption", "consolidateAfter")
	}
	return nodeClass, nodePool, err
}

// read reads a stream of YAML documents.
func read(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading Karpenter's manifests: %w", err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}
