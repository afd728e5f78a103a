package fis

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// The actions that are emulated (FIS User Guide, Actions reference).
const (
	sendSpotInterruptions = "aws:ec2:send-spot-instance-interruptions"
	stopInstances         = "aws:ec2:stop-instances"
	terminateInstances    = "aws:ec2:terminate-instances"
)

// kind describes an action: its targets, its parameters, and its effect.
type kind struct {
	id, description string
	targetKey       string
	resourceType    string
	// permission is what the role of the experiment needs for each instance.
	permission string
	parameters []parameter
	// begin starts the action on instances and returns how long it runs.
	begin func(machines *ec2.State, ids []string, parameters map[string]string) (time.Duration, error)
	// end runs after the action; nil: no effect.
	end func(machines *ec2.State, ids []string, parameters map[string]string)
	// byTagQuota bounds the targets found by tag or filter; 0: no bound.
	byTagQuota int
}

type parameter struct {
	name, description string
	required          bool
	check             func(string) error
}

// kinds is the list of actions, sorted by id.
func kinds() []kind {
	return []kind{
		{
			id: sendSpotInterruptions, description: "Interrupt the specified EC2 Spot instances.",
			permission: "ec2:SendSpotInstanceInterruptions",
			targetKey:  "SpotInstances", resourceType: "aws:ec2:spot-instance", byTagQuota: 5,
			parameters: []parameter{{
				"durationBeforeInterruption", "The time before the interruption, from PT2M to PT15M.", true, checkInterruption,
			}},
			begin: beginInterruption,
		},
		{
			id: stopInstances, description: "Stop the specified EC2 instances.",
			permission: "ec2:StopInstances",
			targetKey:  "Instances", resourceType: "aws:ec2:instance",
			parameters: []parameter{{
				"startInstancesAfterDuration", "The time before the instances are started again, from PT1M to PT12H.", false, checkRestart,
			}},
			begin: beginStop,
			end:   endStop,
		},
		{
			id: terminateInstances, description: "Terminate the specified EC2 instances.",
			permission: "ec2:TerminateInstances",
			targetKey:  "Instances", resourceType: "aws:ec2:instance",
			begin: beginTermination,
		},
	}
}

func findKind(id string) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.id == id })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// check rejects unknown, missing and invalid parameters.
func (k kind) check(name string, given map[string]string) error {
	for _, p := range k.parameters {
		value, ok := given[p.name]
		switch {
		case !ok && p.required:
			return validation("Action %s is missing the required parameter %s.", name, p.name)
		case !ok:
			continue
		}
		if err := p.check(value); err != nil {
			return err
		}
	}
	for _, given := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(k.parameters, func(p parameter) bool { return p.name == given }) {
			return validation("Unexpected parameter %q found in action %q.", given, name)
		}
	}
	return nil
}

func beginInterruption(machines *ec2.State, ids []string, parameters map[string]string) (time.Duration, error) {
	notice, err := parseDuration(parameters["durationBeforeInterruption"])
	if err != nil {
		return 0, err
	}
	return notice, machines.Interrupt(ids, ec2.InterruptOptions{
		Notice: notice, Rebalance: true, Reason: ec2.ReasonExperiment,
	})
}

func beginStop(machines *ec2.State, ids []string, parameters map[string]string) (time.Duration, error) {
	if _, err := machines.Stop(ids); err != nil {
		return 0, err
	}
	if restart := parameters["startInstancesAfterDuration"]; restart != "" {
		return parseDuration(restart)
	}
	return 0, nil
}

func endStop(machines *ec2.State, ids []string, parameters map[string]string) {
	if parameters["startInstancesAfterDuration"] != "" {
		// Someone may have terminated them meanwhile; that is no error.
		_, _ = machines.Start(ids)
	}
}

func beginTermination(machines *ec2.State, ids []string, _ map[string]string) (time.Duration, error) {
	_, err := machines.Terminate(ids)
	return 0, err
}

func checkInterruption(value string) error {
	return checkRange("durationBeforeInterruption", value, 2*time.Minute, 15*time.Minute, "PT2M", "PT15M")
}

func checkRestart(value string) error {
	return checkRange("startInstancesAfterDuration", value, time.Minute, 12*time.Hour, "PT1M", "PT12H")
}

func checkRange(name, value string, least, most time.Duration, from, to string) error {
	d, err := parseDuration(value)
	if err != nil {
		return err
	}
	if d < least || d > most {
		return validation("The parameter %s must be between %s and %s; it is %s.", name, from, to, value)
	}
	return nil
}

var durationPattern = regexp.MustCompile(`^P(?:([0-9]{1,3})D)?(?:T(?:([0-9]{1,5})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,7})S)?)?$`)

// parseDuration reads an ISO 8601 duration of days, hours, minutes and seconds.
func parseDuration(text string) (time.Duration, error) {
	m := durationPattern.FindStringSubmatch(text)
	if m == nil || text == "P" || strings.HasSuffix(text, "T") {
		return 0, validation("%q is not an ISO 8601 duration such as PT2M.", text)
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return 0, validation("%q is not an ISO 8601 duration such as PT2M.", text)
		}
		total += time.Duration(n) * unit
	}
	return total, nil
}
