package emulator_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metadata "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
)

// One call schedules maintenance everywhere: at EC2, in instance metadata, in Health, and for the
// machine itself.
func TestMaintenanceIsConsistentAcrossServices(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	states := server.States
	rebooted := make(chan ec2.Instance, 1)
	booted := make(chan struct{}, 1)
	defer states.EC2.Subscribe(func(c ec2.Change) {
		switch c.What {
		case ec2.Booted:
			booted <- struct{}{}
		case ec2.Rebooted:
			rebooted <- c.Instance
		}
	})()
	made, err := states.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	<-booted
	endpoint, stop, err := states.IMDS.Serve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	at := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	arn, err := states.Health.Schedule(health.Plan{InstanceIDs: []string{id}, Code: "system-reboot", Description: "scheduled reboot", NotBefore: at, NotAfter: at.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	event := states.Health.Planned(arn)[id]

	client := sdk.New(sdk.Options{Region: server.Region(), BaseEndpoint: &url, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
	})})
	status := func() string {
		out, err := client.DescribeInstanceStatus(t.Context(), &sdk.DescribeInstanceStatusInput{InstanceIds: []string{id}})
		if err != nil || len(out.InstanceStatuses) != 1 || len(out.InstanceStatuses[0].Events) != 1 {
			t.Fatalf("status %+v (%v)", out, err)
		}
		e := out.InstanceStatuses[0].Events[0]
		return *e.InstanceEventId + " " + string(e.Code) + " " + e.NotBefore.Format(time.RFC3339) + " " + *e.Description
	}
	agent := metadata.New(metadata.Options{Endpoint: endpoint, EnableFallback: aws.FalseTernary, ClientEnableState: metadata.ClientEnabled})
	seen := func(path string) string {
		out, err := agent.GetMetadata(t.Context(), &metadata.GetMetadataInput{Path: "events/maintenance/" + path})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Content.Close()
		var list []struct{ NotBefore, Code, Description, EventID, State string }
		if err := json.NewDecoder(out.Content).Decode(&list); err != nil && err != io.EOF || len(list) > 1 {
			t.Fatalf("%s events: %+v (%v)", path, list, err)
		}
		if len(list) == 0 {
			return ""
		}
		when, err := time.Parse("2 Jan 2006 15:04:05 MST", list[0].NotBefore)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].EventID + " " + list[0].Code + " " + when.Format(time.RFC3339) + " " + list[0].Description
	}
	want := event + " system-reboot " + at.Format(time.RFC3339)
	if got := [3]string{status(), seen("scheduled"), seen("history")}; got != [3]string{want + " scheduled reboot", want + " scheduled reboot", ""} {
		t.Errorf("planned: %q", got)
	}
	if in := <-rebooted; in.ID != id || in.State != ec2.Running || time.Now().Before(at) {
		t.Errorf("rebooted %s in state %s at %s, planned for %s", in.ID, in.State, time.Now(), at)
	}
	if got := [3]string{status(), seen("scheduled"), seen("history")}; got != [3]string{want + " [Completed] scheduled reboot", "", want + " [Completed] scheduled reboot"} {
		t.Errorf("done: %q", got)
	}
	for deadline := time.Now().Add(time.Minute); states.Health.Events()[0].Status != health.Closed; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Health has %+v", states.Health.Events())
		}
	}
	var statuses []string
	for _, e := range states.Events.Archive() {
		var detail struct{ EventARN, StatusCode string }
		if err := json.Unmarshal(e.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if e.Source == "aws.health" && detail.EventARN == arn {
			statuses = append(statuses, detail.StatusCode)
		}
	}
	if len(statuses) != 3 || statuses[0] != "upcoming" || statuses[1] != "open" || statuses[2] != "closed" {
		t.Errorf("Health sent %q", statuses)
	}
}
