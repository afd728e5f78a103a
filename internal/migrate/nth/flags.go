package nth

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// conversion describes the conversion of a flag whose value is not the default.
type conversion struct {
	flag, usual string
	severity    finding.Severity
	// problem describes the conversion, and fix the remaining work. Both are empty if
	// the policy covers the flag.
	problem, fix string
}

func findConversion(flag string) (conversion, bool) {
	i := slices.IndexFunc(conversions(), func(a conversion) bool { return a.flag == flag })
	if i < 0 {
		return conversion{}, false
	}
	return conversions()[i], true
}

// conversions are all flags of the handler, and values of its chart that are not
// flags.
func conversions() []conversion {
	return slices.Concat(unneededFlags(), chartFlags(), policyFlags(), unsupportedFlags())
}

// unneededFlags are the flags that need no work.
func unneededFlags() []conversion {
	entries := func(problem string, flags ...[2]string) []conversion {
		var all []conversion
		for _, f := range flags {
			all = append(all, conversion{f[0], f[1], finding.Info, problem, ""})
		}
		return all
	}
	return slices.Concat(
		entries("", [2]string{"node-name"}, [2]string{"pod-name"}, [2]string{"pod-namespace"}, [2]string{"enable-sqs-termination-draining", ""}, [2]string{"json-logging", ""},
			[2]string{"log-format-version", ""}, [2]string{"uptime-from-file", ""}, [2]string{"use-provider-id", ""}, [2]string{"emit-kubernetes-events", ""},
			[2]string{"enable-prometheus-server", ""}, [2]string{"enable-probes-server", ""}, [2]string{"metadata-tries", ""}),
		entries("Lifeboat always works like this.", [2]string{"taint-node", "false"},
			[2]string{"exclude-from-load-balancers", "false"}, [2]string{"use-apiserver-cache", "false"}, [2]string{"enable-asg-lifecycle-draining", ""}),
		entries("Lifeboat has no such limit: it handles all nodes concurrently, and the API server's priority and fairness limits the load.",
			[2]string{"workers", "10"}, [2]string{"kube-api-qps", "5"}, [2]string{"kube-api-burst", "10"}),
		entries("Lifeboat deletes a message as soon as it has recorded it, so no tuning is needed.", [2]string{"sqs-msg-visibility-timeout-sec", "20"}, [2]string{"delete-sqs-msg-if-node-not-found", ""}),
		entries("Lifeboat sends heartbeats at a third of the hook's timeout.", [2]string{"heartbeat-interval", "-1"}),
		entries("An instance belongs to the cluster if it is one of its nodes; Lifeboat checks no tag.", [2]string{"check-tag-before-draining", ""}, [2]string{"managed-tag", ""}),
	)
}

// chartFlags are the flags that become values of Lifeboat's chart.
func chartFlags() []conversion {
	entry := func(flag, usual, problem, fix string) conversion {
		return conversion{flag, usual, finding.Info, problem, fix}
	}
	return []conversion{
		entry("queue-url", "", "Lifeboat needs its own queue: a queue can have only one reader.", "run lifeboat aws setup --cluster NAME, and set aws.queueURL in the chart"),
		entry("aws-region", "", "It is a value of Lifeboat's chart.", "aws.region in the chart"),
		entry("aws-endpoint", "", "It is an environment variable.", "AWS_ENDPOINT_URL in controller.extraEnv"),
		entry("metadata-url", "http://169.254.169.254", "It is an environment variable.", "AWS_EC2_METADATA_SERVICE_ENDPOINT in agent.extraEnv"),
		entry("kubernetes-service-host", "", "It is an environment variable.", "KUBERNETES_SERVICE_HOST in controller.extraEnv and agent.extraEnv"),
		entry("kubernetes-service-port", "", "It is an environment variable.", "KUBERNETES_SERVICE_PORT in controller.extraEnv and agent.extraEnv"),
		entry("prometheus-server-port", "9092", "It is a value of Lifeboat's chart.", "controller.ports.metrics"),
		entry("probes-server-port", "8080", "It is a value of Lifeboat's chart.", "controller.ports.health"),
		entry("probes-server-endpoint", "/healthz", "The paths are /healthz and /readyz.", "change your own health checks that use another path"),
		entry("log-level", "info", "It is a value of Lifeboat's chart: 0, or 1 to include decisions.", "controller.verbosity"),
		entry("webhook-proxy", "", "It is an environment variable.", "HTTPS_PROXY in controller.extraEnv"),
		entry("replicas", "1", "All replicas receive notices, and the leader acts; the default is two.", "controller.replicas"),
	}
}

// policyFlags are the flags that the policy covers.
func policyFlags() []conversion {
	var all []conversion
	for _, flag := range []string{
		"dry-run", "cordon-only", "enable-spot-interruption-draining", "enable-scheduled-event-draining", "enable-rebalance-monitoring",
		"enable-rebalance-draining", "heartbeat-until", "webhook-url", "webhook-url-secret-name", "webhook-headers",
	} {
		all = append(all, conversion{flag: flag})
	}
	return all
}

// unsupportedFlags are the flags that need a decision.
func unsupportedFlags() []conversion {
	return []conversion{
		{"delete-local-data", "true", finding.Broken, "Pods with emptyDir volumes do not stay: Lifeboat evicts them, because the instance goes away with its disk. NTH fails to drain a node that has such a pod.", `annotate the pods that must stay with lifeboat.dev/do-not-disrupt: "true"`},
		{"ignore-daemon-sets", "true", finding.Broken, "Lifeboat leaves the pods of DaemonSets on the node and drains the others. NTH fails to drain a node that has such a pod.", "remove the setting if this is what you want; to drain no node, set action: Cordon in the rules"},
		{"pod-termination-grace-period", "-1", finding.Warning, "Each pod has its own grace period, which Lifeboat shortens only before a hard deadline.", "correct terminationGracePeriodSeconds of the pods if necessary"},
		{"node-termination-grace-period", "120", finding.Warning, "A drain ends at the deadline. Without a deadline, drainTimeout of a rule limits it.", "set drainTimeout in a rule for AutoScalingTermination; the default is an hour"},
		{"taint-effect", "NoSchedule", finding.Warning, "The taint is NoSchedule, or PreferNoSchedule with the action Notify. NoExecute would evict without regard to PodDisruptionBudgets.", "for PreferNoSchedule set action: Notify"},
		{"enable-out-of-service-taint", "false", finding.Warning, "Lifeboat sets this taint only if the chart says so, and only after EC2 says that the instance is stopped or terminated.", "set outOfServiceTaint.enabled=true in the chart's values"},
		{"complete-lifecycle-action-delay-seconds", "-1", finding.Broken, "Lifeboat has no such delay, but a hook that runs a Job can wait after the drain.", "add a hook to the policy with when: AfterDrain (docs/guides/from-nth.md, Wait after the drain)"},
		{"webhook-template", "", finding.Broken, "The template was not converted: the fields have other names, and Lifeboat does not support sprig.", "rewrite body (docs/guides/hooks.md, Call a webhook)"},
		{"webhook-template-file", "", finding.Broken, "The template is in a file, and was not converted.", "add body to the policy (docs/guides/hooks.md, Call a webhook)"},
		{"webhook-template-config-map-name", "", finding.Broken, "The template is in a ConfigMap, and was not converted.", "add body to the policy (docs/guides/hooks.md, Call a webhook)"},
		{"kubernetes-events-extra-annotations", "", finding.Warning, "Lifeboat's Events have no extra annotations.", "change programs that read the Events to use their involved object"},
	}
}
