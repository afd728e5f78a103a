package doctor

import (
	"encoding/json"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// policyStatements reads the statements of a policy as values that can be edited.
func policyStatements(document string) []map[string]any {
	var doc map[string]any
	if json.Unmarshal([]byte(document), &doc) != nil {
		return nil
	}
	list, ok := doc["Statement"].([]any)
	if !ok {
		list = []any{doc["Statement"]}
	}
	var all []map[string]any
	for _, s := range list {
		if statement, ok := s.(map[string]any); ok {
			all = append(all, statement)
		}
	}
	return all
}

// policyText returns the policy with these statements.
func policyText(statements []map[string]any) string {
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		return ""
	}
	return string(text)
}

// allowRules adds a statement to a queue's policy that lets rules send to it.
func allowRules(rules []*rule, account, queueARN string) change {
	return onQueue(queueARN, func(q *snapshot.Queue) {
		var statement map[string]any
		if json.Unmarshal([]byte(allowStatement(rules, account, queueARN)), &statement) == nil {
			q.Policy, q.PolicyKnown = policyText(append(policyStatements(q.Policy), statement)), true
		}
	})
}

// restrict adds conditions to the statements with these indexes. It overwrites
// conditions of the same operator and key.
func restrict(queueARN string, indexes []int, operator, key string, values any) change {
	return onQueue(queueARN, func(q *snapshot.Queue) {
		statements := policyStatements(q.Policy)
		for _, i := range indexes {
			if i >= len(statements) {
				continue
			}
			conditions, ok := statements[i]["Condition"].(map[string]any)
			if !ok {
				conditions = map[string]any{}
				statements[i]["Condition"] = conditions
			}
			keys, ok := conditions[operator].(map[string]any)
			if !ok {
				keys = map[string]any{}
				conditions[operator] = keys
			}
			keys[key] = values
		}
		q.Policy = policyText(statements)
	})
}

// exempt lets the statements with Effect Deny not apply to rules.
func exempt(queueARN string, indexes []int, rules []*rule) change {
	return onQueue(queueARN, func(q *snapshot.Queue) {
		for _, i := range indexes {
			values := arnsOf(rules)
			if statements := policyStatements(q.Policy); i < len(statements) {
				values = append(values, exempted(statements[i])...)
			}
			slices.Sort(values)
			s := snapshot.Snapshot{Queues: []snapshot.Queue{*q}}
			restrict(queueARN, []int{i}, denyOperator, "aws:SourceArn", slices.Compact(values))(&s)
			*q = s.Queues[0]
		}
	})
}

// denyOperator excludes rules from a statement with Effect Deny, also for requests
// without the key.
const denyOperator = "ArnNotEqualsIfExists"

// exempted returns the rules that a statement already excludes.
func exempted(statement map[string]any) []string {
	conditions, ok := statement["Condition"].(map[string]any)
	if !ok {
		return nil
	}
	keys, ok := conditions[denyOperator].(map[string]any)
	if !ok {
		return nil
	}
	switch values := keys["aws:SourceArn"].(type) {
	case string:
		return []string{values}
	case []any:
		var all []string
		for _, v := range values {
			if text, ok := v.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}

func arnsOf(rules []*rule) []string {
	arns := []string{}
	for _, r := range rules {
		arns = append(arns, r.ARN)
	}
	return arns
}
