package emit

import "fmt"

// JSON writes the wiring as plain data for custom tools. Attributes have the format
// of SQS's CreateQueue, patterns that of EventBridge's PutRule, and hooks that of
// Auto Scaling's PutLifecycleHook. ${Account}, ${Region} and ${Partition} stand for
// unknown values.
func JSON(cluster string, p Place) ([]byte, error) {
	ph := placeholders{account: "${Account}", region: "${Region}", partition: "${Partition}", tool: "template"}
	w, err := p.wiring(cluster, ph)
	if err != nil {
		return nil, err
	}
	notices, deadLetter, err := queues(w)
	if err != nil {
		return nil, err
	}
	toTopic, err := jsonSubscription(w)
	if err != nil {
		return nil, err
	}
	type target struct {
		ID            string `json:"id"`
		ARN           string `json:"arn"`
		DeadLetterARN string `json:"deadLetterARN"`
	}
	type rule struct {
		Name        string            `json:"name"`
		Role        string            `json:"role"`
		Description string            `json:"description"`
		Kinds       []string          `json:"kinds"`
		Needs       string            `json:"needs,omitempty"`
		Pattern     any               `json:"eventPattern"`
		State       string            `json:"state"`
		Target      target            `json:"target"`
		Tags        map[string]string `json:"tags"`
	}
	var rules []rule
	t := w.Target()
	for _, r := range w.Rules {
		pattern, err := valueOf(r.Pattern)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		rules = append(rules, rule{
			Name: r.Name, Role: r.Role, Description: r.Description, Kinds: r.Kinds, Needs: r.Needs, Pattern: pattern, State: "ENABLED",
			Target: target{t.ID, t.ARN, t.DeadLetterARN}, Tags: ph.tags(w),
		})
	}
	plain := func(q queue) object {
		q.attributes["Policy"] = q.policy
		return object{"name": q.name, "attributes": q.attributes, "tags": ph.tags(w)}
	}
	return render(struct {
		Cluster    string `json:"cluster"`
		Account    string `json:"account"`
		Region     string `json:"region"`
		Partition  string `json:"partition"`
		DeadLetter object `json:"deadLetter"`
		Queue      object `json:"queue"`
		Rules      []rule `json:"rules"`
		Hooks      []hook `json:"hooks,omitempty"`

		Subscription *subscribed `json:"subscription,omitempty"`
	}{w.Cluster, w.Account, w.Region, w.Partition, plain(deadLetter), plain(notices), rules, p.hooks(), toTopic})
}
