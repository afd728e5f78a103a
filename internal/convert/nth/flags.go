package nth

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// answer is what becomes of a flag that is set otherwise than usual.
type answer struct {
	flag, usual string
	severity    finding.Severity
	// says is what becomes of it, and mend what is left to do; both empty: the policy
	// has it all.
	says, mend string
}

func find(flag string) (answer, bool) {
	i := slices.IndexFunc(answers(), func(a answer) bool { return a.flag == flag })
	if i < 0 {
		return answer{}, false
	}
	return answers()[i], true
}

// answers are all flags of the handler, and values of its chart that are none.
func answers() []answer {
	return slices.Concat(always(), chart(), byPolicy(), refused())
}

// always are the flags for which nothing is to be done.
func always() []answer {
	say := func(says string, flags ...[2]string) []answer {
		var all []answer
		for _, f := range flags {
			all = append(all, answer{f[0], f[1], finding.Info, says, ""})
		}
		return all
	}
	return slices.Concat(
		say("", [2]string{"node-name"}, [2]string{"pod-name"}, [2]string{"pod-namespace"}, [2]string{"enable-sqs-termination-draining", ""}, [2]string{"json-logging", ""},
			[2]string{"log-format-version", ""}, [2]string{"uptime-from-file", ""}, [2]string{"use-provider-id", ""}, [2]string{"emit-kubernetes-events", ""},
			[2]string{"enable-prometheus-server", ""}, [2]string{"enable-probes-server", ""}, [2]string{"metadata-tries", ""}),
		say("It is always so.", [2]string{"ignore-daemon-sets", "true"}, [2]string{"delete-local-data", "true"}, [2]string{"taint-node", "false"},
			[2]string{"exclude-from-load-balancers", "false"}, [2]string{"use-apiserver-cache", "false"}, [2]string{"enable-asg-lifecycle-draining", ""}),
		say("There is no such bound: all nodes are worked on at once, and the API server's priority and fairness decides.",
			[2]string{"workers", "10"}, [2]string{"kube-api-qps", "5"}, [2]string{"kube-api-burst", "10"}),
		say("A message is deleted once it is written down, so there is nothing to tune.", [2]string{"sqs-msg-visibility-timeout-sec", "20"}, [2]string{"delete-sqs-msg-if-node-not-found", ""}),
		say("Heartbeats are sent at a third of the hook's timeout.", [2]string{"heartbeat-interval", "-1"}),
		say("An instance is the cluster's if it is one of its nodes; no tag is looked at.", [2]string{"check-tag-before-draining", ""}, [2]string{"managed-tag", ""}),
	)
}

// chart are the flags that become values of Lifeboat's chart.
func chart() []answer {
	say := func(flag, usual, says, mend string) answer { return answer{flag, usual, finding.Info, says, mend} }
	return []answer{
		say("queue-url", "", "Lifeboat reads a queue of its own: a queue has one reader only.", "lifeboat wire apply --cluster NAME, and aws.queueURL in the chart"),
		say("aws-region", "", "It is a value of the chart.", "aws.region in the chart"),
		say("aws-endpoint", "", "It is a variable of the environment.", "AWS_ENDPOINT_URL in controller.extraEnv"),
		say("metadata-url", "http://169.254.169.254", "It is a variable of the environment.", "AWS_EC2_METADATA_SERVICE_ENDPOINT in agent.extraEnv"),
		say("kubernetes-service-host", "", "It is a variable of the environment.", "KUBERNETES_SERVICE_HOST in controller.extraEnv and agent.extraEnv"),
		say("kubernetes-service-port", "", "It is a variable of the environment.", "KUBERNETES_SERVICE_PORT in controller.extraEnv and agent.extraEnv"),
		say("prometheus-server-port", "9092", "It is a value of the chart.", "controller.ports.metrics"),
		say("probes-server-port", "8080", "It is a value of the chart.", "controller.ports.health"),
		say("probes-server-endpoint", "/healthz", "The paths are /healthz and /readyz.", "health checks of your own that ask for another path"),
		say("log-level", "info", "It is a value of the chart: 0, or 1 for decisions as well.", "controller.verbosity"),
		say("webhook-proxy", "", "It is a variable of the environment.", "HTTPS_PROXY in controller.extraEnv"),
		say("replicas", "1", "All replicas listen, and one of them acts; two are usual.", "controller.replicas"),
	}
}

// byPolicy are the flags that the policy is made of.
func byPolicy() []answer {
	var all []answer
	for _, flag := range []string{
		"dry-run", "cordon-only", "enable-spot-interruption-draining", "enable-scheduled-event-draining", "enable-rebalance-monitoring",
		"enable-rebalance-draining", "heartbeat-until", "webhook-url", "webhook-url-secret-name", "webhook-headers",
	} {
		all = append(all, answer{flag: flag})
	}
	return all
}

// refused are the flags that a person has to think about.
func refused() []answer {
	return []answer{
		{"pod-termination-grace-period", "-1", finding.Warning, "Each pod has its own grace period, cut only where a hard deadline leaves less.", "terminationGracePeriodSeconds of the pods, where theirs is wrong"},
		{"node-termination-grace-period", "120", finding.Warning, "A drain has until the deadline. Where there is none, drainTimeout of a rule bounds it.", "drainTimeout in a rule for AutoScalingTermination, an hour where nothing is said"},
		{"taint-effect", "NoSchedule", finding.Warning, "The taint is NoSchedule, or PreferNoSchedule with the action Notify. NoExecute would evict with no regard to budgets.", "action: Notify for PreferNoSchedule"},
		{"enable-out-of-service-taint", "false", finding.Warning, "There is no such taint: once the instance is stopped or gone, the pods that are left are deleted.", "nothing, unless something of yours waits for the taint"},
		{"complete-lifecycle-action-delay-seconds", "-1", finding.Broken, "There is no such delay; a hook that is a Job can wait after the drain.", "a hook of the policy with when: AfterDrain (docs/guides/from-nth.md, Wait after the drain)"},
		{"webhook-template", "", finding.Broken, "The template was not converted: the fields have other names, and there is no sprig.", "write body anew (docs/guides/hooks.md, Call a webhook)"},
		{"webhook-template-file", "", finding.Broken, "The template is in a file, and was not converted.", "write body into the policy (docs/guides/hooks.md, Call a webhook)"},
		{"webhook-template-config-map-name", "", finding.Broken, "The template is in a ConfigMap, and was not converted.", "write body into the policy (docs/guides/hooks.md, Call a webhook)"},
		{"kubernetes-events-extra-annotations", "", finding.Warning, "Events carry no annotations of yours.", "whoever reads them should go by the object that they are about"},
	}
}
