package sandbox

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

func TestBootAgentRunsNoUserDataCommand(t *testing.T) {
	t.Parallel()
	i := newBootAgentsOf(t)
	text := "#!/bin/sh\nlifeboatd agent boot --answer=false --prepare=reboot --start=reboot --wipe-path=/ --hooks=a --state-dir=/\n"
	o, err := i.agent(ec2.Instance{ID: "i-1", PrivateDNSName: "n", UserData: base64.StdEncoding.EncodeToString([]byte(text)), Tags: map[string]string{
		"lifeboat.dev/prepare-time": "1500ms",
	}}, "http://metadata")
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // if a flag is repeated, the last one is used
	for _, arg := range o.Args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		last[name] = value
	}
	if strings.Contains(strings.Join(o.Args, " "), "reboot") || last["--wipe-path"] != "" || last["--state-dir"] != i.disk("i-1") {
		t.Errorf("arguments %q", o.Args)
	}
	if last["--answer"] != "false" || last["--hooks"] != "a" || last["--prepare"] != "sleep 1.5" {
		t.Errorf("arguments %q, want those of the user data that are about hooks", o.Args)
	}
	if !slices.Contains(o.Env, "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://metadata") {
		t.Error("it does not read its instance's metadata")
	}
}
