package kwok

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"
)

// The stages are upstream's Stage objects. What they share is put in here, between [[ and ]], since
// Stages have no way to name an expression; {{ and }} are kwok's own templates.
//
//go:embed stages/*.yaml
var stageFiles embed.FS

// The expressions are in jq, on the pod. A deletion has three numbers of the API server's: the grace
// period, the deletion timestamp (asked + grace period, in whole seconds, rounded down), and by
// subtraction when it was asked. Asking again with a shorter grace moves the first two and not the third.
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

	// endAt is the time at which the containers have ended: a second late, for what the
	// timestamp lost by rounding, so that no pod ends before its work is done.
	endAt = stopWork + ` as $work | ` + grace + ` as $grace
		| if $work == 0 then "0s"
		else (.metadata.deletionTimestamp | fromdate) - $grace + ([$work, $grace] | min | ceil) + 1 | todate end`

	// startAt is the time at which the containers run: counted from when the pod was
	// bound to its node, or was made where nobody bound it.
	startAt = `(.metadata.annotations["` + StartSecondsAnnotation + `"] // "0" | tonumber? // 0) as $work
		| if $work == 0 then "0s"
		else ((.status.conditions // [] | map(select(.type == "PodScheduled" and .status == "True")) | .[0].lastTransitionTime)
			// .metadata.creationTimestamp | fromdate) + ($work | ceil) + 1 | todate end`

	// powerGuard makes a stage fail on a node that kwok does not manage (any more). kwok queues a
	// stage when its delay begins, and does not take it back when its node goes; only the
	// template is evaluated when the delay is over. NodeIPsWith gives the addresses of
	// managed nodes, and kwok's own --node-ip, which is empty, for others.
	powerGuard = `{{ if not (NodeIPsWith .spec.nodeName) }}{{ fail "its node is dark" }}{{ end }}`
)

// ending is one of the two ways in which the containers of a deleted pod end.
type ending struct {
	Name, Comment, Phase, Reason string
	Killed                       bool
	ExitCode                     int
}

// stages returns the Stage objects as one YAML stream.
func stages(kubeletVersion string) ([]byte, error) {
	data := map[string]any{
		"KubeletVersion":    kubeletVersion,
		"StartAt":           oneLine(startAt),
		"EndAt":             oneLine(endAt),
		"WorkOutlastsGrace": oneLine(stopWork + ` > ` + grace),
		"PowerGuard":        powerGuard,
		"Endings": []ending{
			{Name: "pod-stop", Comment: "its work is done within its grace period.", Phase: "Succeeded", Reason: "Completed"},
			// 128 + SIGKILL, as a container runtime reports it.
			{Name: "pod-kill", Comment: "its grace period is over before its work is.", Phase: "Failed", Reason: "Error", Killed: true, ExitCode: 137},
		},
	}
	t, err := template.New("stages").Delims("[[", "]]").ParseFS(stageFiles, "stages/*.yaml")
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
