package sqs

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"
)

// actionsToGrant are the actions that AddPermission can grant (API Reference).
var actionsToGrant = []string{
	"*", "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility",
	"GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue",
}

var accountFormat = regexp.MustCompile(`^[0-9]{12}$`)

// policyDocument is a policy as AddPermission edits it; statements are kept as
// they are.
type policyDocument struct {
	Version   string            `json:"Version"`
	ID        string            `json:"Id,omitempty"`
	Statement []json.RawMessage `json:"Statement"`
}

type grant struct {
	Sid       string              `json:"Sid"`
	Effect    string              `json:"Effect"`
	Principal map[string][]string `json:"Principal"`
	Action    []string            `json:"Action"`
	Resource  string              `json:"Resource"`
}

// AddPermission adds a statement to a queue's policy that lets accounts perform
// actions.
func (s *State) AddPermission(name, label string, accounts, actions []string) error {
	g := grant{Sid: label, Effect: "Allow", Principal: map[string][]string{}}
	for _, account := range accounts {
		if !accountFormat.MatchString(account) {
			return badParameter("Value %s for parameter PrincipalId is invalid. Reason: Unable to verify.", account)
		}
		g.Principal["AWS"] = append(g.Principal["AWS"], "arn:"+s.scope.Partition()+":iam::"+account+":root")
	}
	for _, action := range actions {
		if !slices.Contains(actionsToGrant, action) {
			return badParameter("Value SQS:%s for parameter ActionName is invalid. Reason: Please refer to the appropriate WSDL for a list of valid actions.", action)
		}
		g.Action = append(g.Action, "SQS:"+action)
	}
	return s.editPolicy(name, func(q *queue, doc *policyDocument) error {
		if findStatement(doc, label) >= 0 {
			return badParameter("Value %s for parameter Label is invalid. Reason: Already exists.", label)
		}
		g.Resource = q.arn
		doc.Statement = append(doc.Statement, json.RawMessage(render(g)))
		return nil
	})
}

// RemovePermission removes the statement with that label from a queue's policy.
func (s *State) RemovePermission(name, label string) error {
	return s.editPolicy(name, func(_ *queue, doc *policyDocument) error {
		i := findStatement(doc, label)
		if i < 0 {
			return badParameter("Value %s for parameter Label is invalid. Reason: can't find label on existing policy.", label)
		}
		doc.Statement = slices.Delete(doc.Statement, i, i+1)
		return nil
	})
}

func (s *State) editPolicy(name string, edit func(*queue, *policyDocument) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	doc := policyDocument{Version: "2012-10-17", ID: q.arn + "/SQSDefaultPolicy"}
	if q.settings.policyDocument != "" {
		if err := json.Unmarshal([]byte(q.settings.policyDocument), &doc); err != nil {
			return badAttributeValue("The queue's policy has a single statement that is no list; set the Policy attribute instead.")
		}
	}
	if err := edit(q, &doc); err != nil {
		return err
	}
	wanted, text := q.settings, ""
	if len(doc.Statement) > 0 {
		text = render(doc)
	}
	if err := wanted.setPolicy(text); err != nil {
		return err
	}
	q.configure(wanted, time.Now())
	return nil
}

// findStatement returns the index of the statement with that Sid, or -1.
func findStatement(doc *policyDocument, sid string) int {
	return slices.IndexFunc(doc.Statement, func(raw json.RawMessage) bool {
		var named struct{ Sid string }
		return json.Unmarshal(raw, &named) == nil && named.Sid == sid
	})
}
