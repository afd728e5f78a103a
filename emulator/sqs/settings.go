package sqs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
)

// settings are a queue's changeable attributes. They are replaced as a whole, never changed in
// place.
type settings struct {
	delay      int // seconds, as all that follow
	retention  int
	wait       int
	visibility int
	kmsReuse   int
	maxSize    int // bytes

	kmsKey         string
	managedSSE     bool
	policyDocument string
	policy         *policy.Policy
	redrive        redrivePolicy
	redriveAllow   redriveAllowPolicy
}

// defaults are a new queue's settings (API Reference, SetQueueAttributes).
func defaults() settings {
	return settings{
		retention:  345600,
		visibility: 30,
		kmsReuse:   300,
		maxSize:    maxMessage,
		managedSSE: true,
	}
}

func (s *settings) retentionTime() time.Duration { return time.Duration(s.retention) * time.Second }

// number is an attribute that is a number in a range.
type number struct {
	min, max int
	of       func(*settings) *int
}

// numbers is the table of numeric attributes, with the API Reference's ranges.
var numbers = map[string]number{
	"DelaySeconds":                  {0, 900, func(s *settings) *int { return &s.delay }},
	"MaximumMessageSize":            {1024, maxMessage, func(s *settings) *int { return &s.maxSize }},
	"MessageRetentionPeriod":        {60, 1209600, func(s *settings) *int { return &s.retention }},
	"ReceiveMessageWaitTimeSeconds": {0, 20, func(s *settings) *int { return &s.wait }},
	"VisibilityTimeout":             {0, maxVisibility, func(s *settings) *int { return &s.visibility }},
	"KmsDataKeyReusePeriodSeconds":  {60, 86400, func(s *settings) *int { return &s.kmsReuse }},
}

// known are all readable attributes.
func known(name string) bool {
	if _, ok := numbers[name]; ok {
		return true
	}
	return slices.Contains([]string{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
		"CreatedTimestamp", "LastModifiedTimestamp", "QueueArn", "Policy", "RedrivePolicy", "RedriveAllowPolicy",
		"KmsMasterKeyId", "SqsManagedSseEnabled",
		"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit",
	}, name)
}

// apply puts attributes into settings of the queue with that ARN, in order of
// their names so that errors are stable. The lock must be held.
func (s *State) apply(to *settings, arn string, attributes map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := s.applyOne(to, arn, name, attributes[name]); err != nil {
			return err
		}
	}
	if to.kmsKey != "" && attributes["SqsManagedSseEnabled"] == "true" {
		return badAttributeValue("You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	}
	return nil
}

func (s *State) applyOne(to *settings, arn, name, value string) error {
	if n, ok := numbers[name]; ok {
		v, err := strconv.Atoi(value)
		if err != nil || v < n.min || v > n.max {
			return badAttribute(name)
		}
		*n.of(to) = v
		return nil
	}
	switch name {
	case "Policy":
		return to.setPolicy(value)
	case "RedrivePolicy":
		return s.setRedrive(to, arn, value)
	case "RedriveAllowPolicy":
		return to.setRedriveAllow(value)
	case "KmsMasterKeyId":
		to.kmsKey, to.managedSSE = value, value == ""
		return nil
	case "SqsManagedSseEnabled":
		return to.setManagedSSE(value)
	}
	return unknownAttribute(name)
}

func (s *settings) setManagedSSE(value string) error {
	enabled, err := strconv.ParseBool(value)
	if err != nil {
		return badAttribute("SqsManagedSseEnabled")
	}
	s.managedSSE = enabled
	return nil
}

func (s *settings) setPolicy(document string) error {
	s.policyDocument, s.policy = document, nil
	if document == "" {
		return nil
	}
	parsed, err := policy.Parse(document)
	if err != nil {
		return badAttributeValue("Invalid value for the parameter Policy. Reason: %s.", err)
	}
	s.policy = parsed
	return nil
}

// attributes renders the settings. Those without a value are left out, as SQS
// does.
func (s *settings) attributes() map[string]string {
	all := map[string]string{"SqsManagedSseEnabled": strconv.FormatBool(s.managedSSE)}
	for name, n := range numbers {
		all[name] = strconv.Itoa(*n.of(s))
	}
	if s.kmsKey == "" {
		delete(all, "KmsDataKeyReusePeriodSeconds")
	} else {
		all["KmsMasterKeyId"] = s.kmsKey
	}
	if s.policyDocument != "" {
		all["Policy"] = s.policyDocument
	}
	if s.redrive.Target != "" {
		all["RedrivePolicy"] = render(s.redrive)
	}
	if s.redriveAllow.Permission != "" {
		all["RedriveAllowPolicy"] = render(s.redriveAllow)
	}
	return all
}

// differs rejects wanted if it differs from s in the named attributes.
func (s *settings) differs(wanted settings, names []string) error {
	have, want := s.attributes(), wanted.attributes()
	for _, name := range names {
		if have[name] != want[name] {
			return queueExists(name)
		}
	}
	return nil
}

// render writes plain structs, which always encode.
func render(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
