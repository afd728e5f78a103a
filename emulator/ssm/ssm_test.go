package ssm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/ssm"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

const images = "/aws/service/eks/optimized-ami/"

func TestPublicParameters(t *testing.T) {
	t.Parallel()
	state := ssm.New(wire.Scope{Account: "123456789012", Region: "eu-west-1"}, func(arch string) string {
		return map[string]string{"x86_64": "ami-x"}[arch]
	})
	for name, want := range map[string]string{
		"1.36/amazon-linux-2023/x86_64/standard/recommended/image_id":                                           "ami-x",
		"1.31/amazon-linux-2023/x86_64/standard/recommended/image_id":                                           "ami-x",
		"1.36/amazon-linux-2023/x86_64/standard/recommended/image_name":                                         "amazon-eks-node-al2023-x86_64-standard-1.36-v20261014",
		"1.36/amazon-linux-2023/x86_64/standard/recommended/release_version":                                    "1.36.0-20261014",
		"1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261014/image_id": "ami-x",
		"1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20200101/image_id": "",
		"1.35/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261014/image_id": "",
		"1.36/amazon-linux-2023/arm64/standard/recommended/image_id":                                            "",
		"1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id":                                             "",
		"1.36/amazon-linux-2/recommended/image_id":                                                              "",
		"2.36/amazon-linux-2023/x86_64/standard/recommended/image_id":                                           "",
	} {
		p, ok := state.Parameter(images + name)
		if p.Value != want || ok != (want != "") {
			t.Errorf("%s = %q, %v; want %q", name, p.Value, ok, want)
		}
	}
	whole, _ := state.Parameter(images + "1.36/amazon-linux-2023/x86_64/standard/recommended")
	var members map[string]string
	if err := json.Unmarshal([]byte(whole.Value), &members); err != nil || members["image_id"] != "ami-x" {
		t.Errorf("without a leaf: %v: %s", err, whole.Value)
	}
	if want := "arn:aws:ssm:eu-west-1::parameter" + images + "1.36/amazon-linux-2023/x86_64/standard/recommended"; whole.ARN != want {
		t.Errorf("ARN = %s, want %s", whole.ARN, want)
	}
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	server.States.SSM.Put("/team/image", "ami-0")
	server.States.SSM.Put("/team/image", "ami-1")
	name := images + "1.36/amazon-linux-2023/arm64/standard/recommended/image_id"
	for _, tc := range []struct {
		name, action, body string
		status             int
		want               string
	}{
		{"public", "GetParameter", `{"Name":"` + name + `"}`, 200,
			`{"Parameter":{"Name":"` + name + `","Type":"String","Value":"` + ec2.ImageID("arm64") + `","Version":1,"LastModifiedDate":T,` +
				`"ARN":"arn:aws:ssm:us-east-1::parameter` + name + `","DataType":"text"}}`},
		{"own", "GetParameter", `{"Name":"/team/image","WithDecryption":true}`, 200,
			`{"Parameter":{"Name":"/team/image","Type":"String","Value":"ami-1","Version":2,"LastModifiedDate":T,` +
				`"ARN":"arn:aws:ssm:us-east-1:123456789012:parameter/team/image","DataType":"text"}}`},
		{"none", "GetParameter", `{"Name":"/none"}`, 400, `{"__type":"ParameterNotFound","message":""}`},
		{"no name", "GetParameter", `{}`, 400,
			`{"__type":"ValidationException","message":"1 validation error detected: Value at 'name' failed to satisfy constraint: Member must not be null"}`},
		{"some", "GetParameters", `{"Names":["/none","/team/image"]}`, 200,
			`{"Parameters":[{"Name":"/team/image","Type":"String","Value":"ami-1","Version":2,"LastModifiedDate":T,` +
				`"ARN":"arn:aws:ssm:us-east-1:123456789012:parameter/team/image","DataType":"text"}],"InvalidParameters":["/none"]}`},
		{"no names", "GetParameters", `{}`, 400, `{"__type":"ValidationException","message":"1 validation error detected: Value '[]' at 'names' ` +
			`failed to satisfy constraint: Member must have length less than or equal to 10, and greater than or equal to 1"}`},
		{"unknown", "PutParameter", `{}`, 400, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":""}`},
	} {
		status, body := emulatortest.Call{Service: "ssm", Target: "AmazonSSM." + tc.action, Body: tc.body}.Do(t, url)
		if before, after, ok := strings.Cut(body, `"LastModifiedDate":`); ok {
			_, rest, _ := strings.Cut(after, ",")
			body = before + `"LastModifiedDate":T,` + rest
		}
		if diff := cmp.Diff(tc.want, body); diff != "" || status != tc.status {
			t.Errorf("%s: status %d, want %d; body (-want +got):\n%s", tc.name, status, tc.status, diff)
		}
	}
	server.Gate.Deny("ssm", "GetParameter")
	status, body := emulatortest.Call{Service: "ssm", Target: "AmazonSSM.GetParameter", Body: `{"Name":"/team/image"}`}.Do(t, url)
	if status != 400 || !strings.Contains(body, `"__type":"AccessDeniedException"`) || !strings.Contains(body, "arn:aws:ssm:us-east-1:123456789012:parameter/team/image") {
		t.Errorf("denied: status %d: %s", status, body)
	}
}
