//go:build e2e

package emulator_test

// A pattern and an event as a user would test them.
const (
	cliPattern = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`
	cliEvent   = `{"version":"0","id":"1","account":"123456789012","source":"aws.ec2","time":"2026-05-11T08:14:02Z","region":"us-east-1",` +
		`"resources":["arn:aws:ec2:us-east-1b:instance/i-0a1b2c3d4e5f60718"],"detail-type":"EC2 Spot Instance Interruption Warning",` +
		`"detail":{"instance-id":"i-0a1b2c3d4e5f60718","instance-action":"terminate"}}`
)

var eventsCLICases = []cliCase{
	{name: "put a rule", args: []string{"events", "put-rule", "--name", "spot", "--event-pattern", cliPattern, "--tags", "Key=team,Value=a"},
		want: map[string]string{"RuleArn": "arn:aws:events:us-east-1:123456789012:rule/spot"}},
	{name: "put a wrong rule", args: []string{"events", "put-rule", "--name", "bad", "--event-pattern", `{"source":"aws.ec2"}`},
		wantErr: "InvalidEventPatternException"},
	{name: "put a target", args: []string{"events", "put-targets", "--rule", "spot", "--targets", "Id=queue,Arn=arn:aws:sqs:us-east-1:123456789012:notices"},
		want: map[string]string{"FailedEntryCount": "0"}},
	{name: "list targets", args: []string{"events", "list-targets-by-rule", "--rule", "spot"},
		want: map[string]string{"Targets.0.Id": "queue", "Targets.0.Arn": "arn:aws:sqs:us-east-1:123456789012:notices", "Targets.1": ""}},
	{name: "list rules", args: []string{"events", "list-rules"},
		want: map[string]string{"Rules.0.State": "ENABLED", "Rules.0.EventPattern": cliPattern, "Rules.1": ""}},
	{name: "test a pattern that matches", args: []string{"events", "test-event-pattern", "--event-pattern", cliPattern, "--event", cliEvent},
		want: map[string]string{"Result": "true"}},
	{name: "test the misspelt one", args: []string{"events", "test-event-pattern", "--event", cliEvent,
		"--event-pattern", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`}, want: map[string]string{"Result": "false"}},
	{name: "forge an event of AWS", args: []string{"events", "put-events", "--entries",
		`[{"Source":"aws.ec2","DetailType":"EC2 Spot Instance Interruption Warning","Detail":"{}","Time":"2026-05-11T08:14:02Z"}]`},
		want: map[string]string{"FailedEntryCount": "1", "Entries.0.ErrorCode": "NotAuthorizedForSourceException", "Entries.0.EventId": ""}},
	{name: "delete it with a target", args: []string{"events", "delete-rule", "--name", "spot"}, wantErr: "ValidationException"},
}
