//go:build e2e

package emulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

// cliCase is one run of the real AWS CLI. The cases of a group run in order,
// on an account of the group's own.
type cliCase struct {
	name string
	// args follow "aws --endpoint-url …". $NAME is a value that an earlier case
	// saved.
	args []string
	// want maps paths in the JSON output, such as "Messages.0.Body", to values:
	// "*" for any, "" for none.
	want map[string]string
	// save keeps values for later cases: name → path.
	save map[string]string
	// wantErr is the AWS error code that the CLI must report.
	wantErr string
}

// cliGroups are all the cases: one line per service. A call takes a second or more, so they cover
// each shape of request and error once. The SDK tests of each service cover the details.
var cliGroups = []struct {
	name  string
	cases []cliCase
	// prepare creates what no API call can create, and returns values to save.
	prepare func(t *testing.T, s *emulator.States) map[string]string
}{
	{"sts", stsCLICases, nil},
	{"sqs", sqsCLICases, nil},
	{"events", eventsCLICases, nil},
	{"ec2", ec2CLICases, nil},
	{"fis", fisCLICases, nil},
	{"autoscaling", autoscalingCLICases, prepareAutoScaling},
	{"karpenter", karpenterCLICases, prepareKarpenter},
}

var stsCLICases = []cliCase{
	{name: "who am I", args: []string{"sts", "get-caller-identity"},
		want: map[string]string{"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/lifeboat", "UserId": "*"}},
	{name: "assume nonsense", args: []string{"sts", "assume-role", "--role-arn", "arn:aws:iam::123456789012:user/x", "--role-session-name", "me"},
		wantErr: "ValidationError"},
}

var sqsCLICases = []cliCase{
	{name: "create a queue", args: []string{"sqs", "create-queue", "--queue-name", "cli", "--attributes", "VisibilityTimeout=60", "--tags", "team=a"},
		save: map[string]string{"URL": "QueueUrl"}, want: map[string]string{"QueueUrl": "*"}},
	{name: "list queues", args: []string{"sqs", "list-queues", "--queue-name-prefix", "cl"}, want: map[string]string{"QueueUrls.0": "$URL", "QueueUrls.1": ""}},
	{name: "find the URL of none", args: []string{"sqs", "get-queue-url", "--queue-name", "none"}, wantErr: "AWS.SimpleQueueService.NonExistentQueue"},
	{name: "set attributes", args: []string{"sqs", "set-queue-attributes", "--queue-url", "$URL", "--attributes", "DelaySeconds=0,MessageRetentionPeriod=600"}},
	{name: "get attributes", args: []string{"sqs", "get-queue-attributes", "--queue-url", "$URL", "--attribute-names", "All"},
		want: map[string]string{"Attributes.QueueArn": "arn:aws:sqs:us-east-1:123456789012:cli", "Attributes.MessageRetentionPeriod": "600",
			"Attributes.VisibilityTimeout": "60", "Attributes.ApproximateNumberOfMessages": "0"}},
	{name: "list tags", args: []string{"sqs", "list-queue-tags", "--queue-url", "$URL"}, want: map[string]string{"Tags.team": "a"}},
	{name: "send", args: []string{"sqs", "send-message", "--queue-url", "$URL", "--message-body", `{"a": "<b> & ü"}`,
		"--message-attributes", `{"kind":{"DataType":"String","StringValue":"spot"}}`},
		save: map[string]string{"ID": "MessageId"}, want: map[string]string{"MD5OfMessageBody": "*", "MD5OfMessageAttributes": "*"}},
	{name: "receive", args: []string{"sqs", "receive-message", "--queue-url", "$URL", "--wait-time-seconds", "2", "--attribute-names", "All",
		"--message-attribute-names", "All"},
		save: map[string]string{"HANDLE": "Messages.0.ReceiptHandle"},
		want: map[string]string{"Messages.0.MessageId": "$ID", "Messages.0.Body": `{"a": "<b> & ü"}`, "Messages.0.Attributes.ApproximateReceiveCount": "1",
			"Messages.0.MessageAttributes.kind.StringValue": "spot"}},
	{name: "delete with nonsense", args: []string{"sqs", "delete-message", "--queue-url", "$URL", "--receipt-handle", "nonsense"}, wantErr: "ReceiptHandleIsInvalid"},
	{name: "delete in a batch", args: []string{"sqs", "delete-message-batch", "--queue-url", "$URL", "--entries", "Id=good,ReceiptHandle=$HANDLE", "Id=bad,ReceiptHandle=x"},
		want: map[string]string{"Successful.0.Id": "good", "Failed.0.Id": "bad", "Failed.0.Code": "ReceiptHandleIsInvalid", "Failed.0.SenderFault": "true"}},
	{name: "purge", args: []string{"sqs", "purge-queue", "--queue-url", "$URL"}},
	{name: "delete the queue", args: []string{"sqs", "delete-queue", "--queue-url", "$URL"}},
	{name: "send to no queue", args: []string{"sqs", "send-message", "--queue-url", "$URL", "--message-body", "x"},
		wantErr: "AWS.SimpleQueueService.NonExistentQueue"},
}

// TestAWSCLI runs every AWS CLI on the PATH: versions differ in protocol.
func TestAWSCLI(t *testing.T) {
	clis := awsCLIs()
	if len(clis) == 0 {
		need.Missing(t, "an AWS CLI on $PATH to check the emulator with: install awscli")
	}
	for version, path := range clis {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			for _, group := range cliGroups {
				t.Run(group.name, func(t *testing.T) {
					server, url := emulatortest.Serve(t, emulator.Options{})
					c := &cli{path: path, url: url, empty: filepath.Join(t.TempDir(), "none"), saved: map[string]string{}}
					if group.prepare != nil {
						c.saved = group.prepare(t, server.States)
					}
					for _, tc := range group.cases {
						t.Run(tc.name, func(t *testing.T) { c.run(t, tc) })
					}
				})
			}
		})
	}
}

// awsCLIs finds the working programs named aws on the PATH, by their versions, such as "aws-cli
// 2.9.19".
func awsCLIs() map[string]string {
	found := map[string]string{}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, "aws")
		out, err := exec.Command(path, "--version").CombinedOutput()
		version, _, ok := strings.Cut(string(out), " ")
		version = strings.ReplaceAll(version, "/", " ")
		if err == nil && ok && found[version] == "" {
			found[version] = path
		}
	}
	return found
}

// cli is one AWS CLI against one emulated account.
type cli struct {
	path, url string
	empty     string // a file that does not exist, for configuration
	saved     map[string]string
}

func (c *cli) run(t *testing.T, tc cliCase) {
	t.Helper()
	args := []string{"--endpoint-url", c.url, "--output", "json"}
	for _, arg := range tc.args {
		args = append(args, c.fill(arg))
	}
	// A call takes seconds at most; the timeout shows which call hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	// The CLI must not read the user's own AWS configuration.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "AWS_") }),
		"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_CONFIG_FILE="+c.empty, "AWS_SHARED_CREDENTIALS_FILE="+c.empty,
		"AWS_PAGER=", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true", "NO_PROXY=127.0.0.1", "PYTHONUTF8=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if tc.wantErr != "" {
		if err == nil || !strings.Contains(stderr.String(), "("+tc.wantErr+")") {
			t.Fatalf("error = %v, want %s; output: %s", err, tc.wantErr, stderr.String())
		}
		return
	}
	if err != nil {
		t.Fatalf("aws %s: %v: %s", strings.Join(tc.args, " "), err, stderr.String())
	}
	c.check(t, tc, stdout.Bytes())
}

func (c *cli) check(t *testing.T, tc cliCase, stdout []byte) {
	t.Helper()
	var out any
	if len(bytes.TrimSpace(stdout)) > 0 {
		if err := json.Unmarshal(stdout, &out); err != nil {
			t.Fatalf("output is no JSON: %v: %s", err, stdout)
		}
	}
	for name, path := range tc.save {
		c.saved[name] = at(out, path)
	}
	for path, want := range tc.want {
		got, want := at(out, path), c.fill(want)
		if want == "*" && got != "" || got == want {
			continue
		}
		t.Errorf("%s = %q, want %q, in %s", path, got, want, stdout)
	}
}

// fill replaces $NAME with the value saved under that name.
func (c *cli) fill(text string) string {
	for name, value := range c.saved {
		text = strings.ReplaceAll(text, "$"+name, value)
	}
	return text
}

// at is the value at a dotted path, as text; empty if there is none.
func at(v any, path string) string {
	for _, step := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(node) {
				return ""
			}
			v = node[i]
		default:
			return ""
		}
	}
	switch v.(type) {
	case nil:
		return ""
	case map[string]any, []any:
		b, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v)
}
