package doctor

import (
	"encoding/json"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// The fixes refer to resources in the language of the file that defines them: the name
// of a resource in a template can contain a text that AWS generates.

// references are the ARNs of rules, as their files refer to them.
func (e *diagnosis) references(rules []*rule) []json.RawMessage {
	all := []json.RawMessage{}
	for _, r := range rules {
		all = append(all, refer(r.Reference, r.ARN))
	}
	return all
}

// refer returns a reference to an ARN, or the ARN itself.
func refer(reference, arn string) json.RawMessage {
	if reference != "" {
		return json.RawMessage(reference)
	}
	text, err := json.Marshal(arn)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// accountReference returns the queue's account in the language of its file.
func (e *diagnosis) accountReference() json.RawMessage {
	switch {
	case strings.Contains(e.queue.Reference, "Fn::GetAtt"):
		return json.RawMessage(`{"Ref":"AWS::AccountId"}`)
	case e.queue.Reference != "" && e.Account == "":
		return json.RawMessage(`"${data.aws_caller_identity.current.account_id}"`)
	}
	return refer("", e.account())
}

// conditionText limits a statement to rules of the queue's account.
func (e *diagnosis) conditionText(rules []*rule) string {
	return toText(map[string]any{
		"ArnEquals":    map[string]any{"aws:SourceArn": e.references(rules)},
		"StringEquals": map[string]any{"aws:SourceAccount": e.accountReference()},
	})
}

// allowStatementText is the statement that allows only these rules to send to a queue.
func (e *diagnosis) allowStatementText(rules []*rule, q snapshot.Queue) string {
	return toText(struct {
		Effect    string
		Principal map[string]string
		Action    string
		Resource  json.RawMessage
		Condition json.RawMessage
	}{"Allow", map[string]string{"Service": eventBridge}, "sqs:SendMessage", refer(q.Reference, q.ARN), json.RawMessage(e.conditionText(rules))})
}

func toText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
