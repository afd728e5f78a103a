package kwok

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"
)

// The stages are upstream's Stage objects. Shared expressions are inserted between [[ and ]], since
// Stages cannot name an expression; {{ and }} are kwok's own templates.
//
// The expressions are in jq, on the pod. A deletion has three numbers of the API server's: the
// grace period, the deletion timestamp (request + grace period, in whole seconds, rounded down),
// and by subtraction the time of the request. A second request with a shorter grace changes the
// first two and not the third.
//
//go:embed stages/*.yaml
var stageFiles embed.FS

// These expressions are in jq, on the pod.
const (
	// stopWork is how many seconds the containers take to end, unless they are killed.
	stopWork = `(if .status.phase == "Running" then
		([.spec.containers[].lifecycle.preStop // empty
			| .sleep.seconds // ([(.exec.command // []) | join(" ")
				| capture("(^|[^a-z0-9_-])sleep +(?<n>[0-9]+([.][0-9]+)?)"; "g") | .n | tonumber] | add // 0)
		 ] | max // 0)
		+ (.metadata.annotations["` + StopSecondsAnnotation + `"] // "0" | tonumber? // 0)
		else 0 end)`

	grace = `(.metadata.deletionGracePeriodSeconds // 0)`

	// down is when the kubelet of a node that shuts down asked the pod to stop, or empty. If the
	// pod is deleted too, the earlier request counts.
	down = `(.metadata.annotations["` + ShutdownAnnotation + `"] // empty | fromdate)`

	downGrace = `(.metadata.annotations["` + ShutdownGraceSecondsAnnotation + `"] // "0" | tonumber)`

	// endAt is the time at which the containers end. It is a second late, because the timestamp is
	// rounded down, and no pod may end before its work is done.
	endAt = stopWork + ` as $work | ` + grace + ` as $grace
		| if $work == 0 then "0s"
		else ([(.metadata.deletionTimestamp | fromdate) - $grace, ` + down + `] | min) + ([$work, $grace] | min | ceil) + 1 | todate end`

	// downAt is the same for a pod that only its kubelet asked to stop.
	downAt = stopWork + ` as $work | ` + downGrace + ` as $grace
		| if $work == 0 then "0s" else ` + down + ` + ([$work, $grace] | min | ceil) + 1 | todate end`

	// startAt is the time at which the containers run. It counts from the binding of the pod to its
	// node, or from its creation if there was no binding.
	startAt = `(.metadata.annotations["` + StartSecondsAnnotation + `"] // "0" | tonumber? // 0) as $work
		| if $work == 0 then "0s"
		else ((.status.conditions // [] | map(select(.type == "PodScheduled" and .status == "True")) | .[0].lastTransitionTime)
			// .metadata.creationTimestamp | fromdate) + ($work | ceil) + 1 | todate end`

	// runWork is the time until the containers exit without a request, in seconds, or empty.
	runWork = `.metadata.annotations["` + RunSecondsAnnotation + `"] // "" | tonumber?`

	// finishAt is the time at which they do.
	finishAt = `(` + runWork + `) as $work | (.status.startTime | fromdate) + ($work | ceil) + 1 | todate`

	// exitCode is their exit code.
	exitCode = `.metadata.annotations["` + ExitCodeAnnotation + `"] // "0" | tonumber? // 1`

	// powerGuard makes a stage fail on a node that kwok does not manage (any more). kwok queues a
	// stage when its delay begins, and does not cancel it when its node leaves; only the
	// template is evaluated when the delay is over. NodeIPsWith gives the addresses of
	// managed nodes, and kwok's own --node-ip, which is empty, for others.
	powerGuard = `{{ if not (NodeIPsWith .spec.nodeName) }}{{ fail "its node has no power" }}{{ end }}`
)

// ending is one of the ways in which the containers of a pod end.
type ending struct {
	Name, Comment, Phase, Reason string
	Deleted                      bool   // the pod is being deleted
	When                         string // in jq: true or false
	At                           string // in jq
	ExitCode                     string // a number, or one as kwok's templates read it
}

// endings are all endings. The template of the stage names the annotation, because kwok's templates
// cannot use jq.
func endings() []ending {
	const code = `{{ or (index $.metadata.annotations "` + ExitCodeAnnotation + `") "0" }}`
	finish := ending{Name: "pod-finish", Comment: "its containers have run for their time.", Phase: "Succeeded", Reason: "Completed",
		When: `(` + exitCode + `) == 0`, At: finishAt, ExitCode: "0"}
	fail := ending{Name: "pod-fail", Comment: "as before, but with an error.", Phase: "Failed", Reason: "Error",
		When: `(` + exitCode + `) != 0`, At: finishAt, ExitCode: code}
	for _, e := range []*ending{&finish, &fail} {
		e.When = `[` + runWork + `] != [] and ` + e.When
	}
	return []ending{
		{Name: "pod-stop", Comment: "its work is done within its grace period.", Phase: "Succeeded", Reason: "Completed",
			Deleted: true, When: `[` + runWork + `] == [] and (` + stopWork + ` > ` + grace + `) == false`, At: endAt, ExitCode: "0"},
		// 128 + SIGTERM. A Job must not count it as success.
		{Name: "pod-terminate", Comment: "it was to run for a time, and stops before.", Phase: "Failed", Reason: "Error",
			Deleted: true, When: `[` + runWork + `] != [] and (` + stopWork + ` > ` + grace + `) == false`, At: endAt, ExitCode: "143"},
		// 128 + SIGKILL, as a container runtime reports it.
		{Name: "pod-kill", Comment: "its grace period is over before its work is.", Phase: "Failed", Reason: "Error",
			Deleted: true, When: stopWork + ` > ` + grace, At: endAt, ExitCode: "137"},
		finish, fail,
		{Name: "pod-shutdown", Comment: "its node shuts down, and its work is done in time.", Phase: "Failed", Reason: "Completed",
			When: `[` + down + `] != [] and (` + stopWork + ` > ` + downGrace + `) == false`, At: downAt, ExitCode: "0"},
		{Name: "pod-shutdown-kill", Comment: "its node shuts down, and its grace period is too short.", Phase: "Failed", Reason: "Error",
			When: `[` + down + `] != [] and ` + stopWork + ` > ` + downGrace, At: downAt, ExitCode: "137"},
	}
}

// stages returns the Stage objects as one YAML stream.
func stages(kubeletVersion string) ([]byte, error) {
	data := map[string]any{
		"KubeletVersion": kubeletVersion,
		"StartAt":        oneLine(startAt),
		"PowerGuard":     powerGuard,

		"ShutdownAnnotation": ShutdownAnnotation,
		"Endings":            endings(),
	}
	t, err := template.New("stages").Delims("[[", "]]").Funcs(template.FuncMap{"oneLine": oneLine}).ParseFS(stageFiles, "stages/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("parsing the stages: %w", err)
	}
	var out bytes.Buffer
	for _, name := range []string{"node.yaml", "pod.yaml"} {
		if err := t.ExecuteTemplate(&out, name, data); err != nil {
			return nil, fmt.Errorf("filling in the stages: %w", err)
		}
		out.WriteString("---\n")
	}
	return out.Bytes(), nil
}

// oneLine folds an expression, for a YAML string in single quotes.
func oneLine(jq string) string { return strings.Join(strings.Fields(jq), " ") }
