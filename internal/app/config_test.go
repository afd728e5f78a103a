package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func good() Config {
	return Config{
		QueueURL: "https://sqs.eu-west-1.amazonaws.com/210987654321/lifeboat-prod", Margin: 10 * time.Second, TTL: time.Hour,
	}
}

func TestAccountIsTakenFromQueue(t *testing.T) {
	for queue, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/210987654321/lifeboat-prod": "210987654321",
		"http://127.0.0.1:4566/123456789012/lifeboat-sandbox":            "123456789012",
		"http://127.0.0.1:4566/queue/lifeboat":                           "",
		"http://127.0.0.1:4566/":                                         "",
	} {
		c := good()
		c.QueueURL = queue
		got, err := c.complete()
		if err != nil || got.Account != want {
			t.Errorf("account of %s: %q, error %v; want %q", queue, got.Account, err, want)
		}
	}
	c := good()
	c.Account = "111111111111"
	if got, err := c.complete(); err != nil || got.Account != "111111111111" {
		t.Errorf("account %q, error %v although one was given", got.Account, err)
	}
}

func TestConfigurationErrorsSayWhatToWrite(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		says   string
	}{
		"no queue":                    {func(c *Config) { c.QueueURL = "" }, "--queue-url"},
		"a queue's name":              {func(c *Config) { c.QueueURL = "lifeboat-prod" }, "get-queue-url"},
		"no URL":                      {func(c *Config) { c.QueueURL = "http://[::1" }, "get-queue-url"},
		"Karpenter's queue by name":   {func(c *Config) { c.KarpenterQueueURL = "karpenter" }, "--karpenter-queue-url"},
		"Karpenter's queue is ours":   {func(c *Config) { c.KarpenterQueueURL = c.QueueURL }, "Lifeboat's own queue"},
		"a short account":             {func(c *Config) { c.Account = "42" }, "twelve digits"},
		"a margin below 0":            {func(c *Config) { c.Margin = -time.Second }, "--margin"},
		"a margin of 1 h":             {func(c *Config) { c.Margin = time.Hour }, "--margin"},
		"a canary that only observes": {func(c *Config) { c.Observe, c.CanaryInterval = true, time.Hour }, "--mode=Observe"},
		"no time to keep":             {func(c *Config) { c.TTL = 0 }, "--ttl"},
		"no such source":              {func(c *Config) { c.Sources = []string{"sqs", "smoke"} }, `"smoke": choose from sqs,ec2,autoscaling`},
		"asked too often":             {func(c *Config) { c.SpotInterval = time.Millisecond }, "--spot-interval"},
		"the event history at once":   {func(c *Config) { c.CloudTrailInterval = time.Millisecond }, "--cloudtrail-interval"},
		"CloudTrail without its flag": {func(c *Config) { c.Sources = []string{"cloudtrail"} }, `"cloudtrail": choose from sqs,ec2,autoscaling`},
		"a patience of 0":             {func(c *Config) { c.StatusThreshold = -time.Second }, "--status-threshold"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := good()
			tc.change(&c)
			if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v does not speak of %q", err, tc.says)
			}
		})
	}
}

func TestOnlyQueueSourceNeedsQueue(t *testing.T) {
	c := good()
	c.QueueURL, c.Sources = "", []string{"ec2"}
	if _, err := c.complete(); err != nil {
		t.Errorf("without the queue and its source: %v", err)
	}
	c.Sources = nil
	if _, err := c.complete(); err == nil {
		t.Error("all sources, and no queue: no error")
	}
	c = good()
	if got, err := c.complete(); err != nil || len(got.Sources) != 4 {
		t.Errorf("sources %v, error %v", got.Sources, err)
	}
	c.CloudTrailInterval = time.Minute
	if got, err := c.complete(); err != nil || len(got.Sources) != 5 || len(sources()) != 5 {
		t.Errorf("with CloudTrail: sources %v, error %v", got.Sources, err)
	}
}

func TestSourceReplicaPlacement(t *testing.T) {
	got := map[string]bool{}
	for _, r := range sources() {
		got[r.name] = sourceRunnable{where: r.where}.NeedLeaderElection()
	}
	want := map[string]bool{"sqs": false, "imds": false, "ec2": true, "autoscaling": true, "cloudtrail": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on the leader alone (-want +got):\n%s", diff)
	}
}
