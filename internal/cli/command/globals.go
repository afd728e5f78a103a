package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// The values of -o.
const (
	OutputText = "text"
	OutputJSON = "json"
	// OutputYAML is for commands that write objects; TakesYAML marks them.
	OutputYAML = "yaml"
	TakesYAML  = "lifeboat.dev/yaml"
)

// Globals are the flags that every command has.
type Globals struct {
	Kubeconfig string
	Context    string
	Sandbox    string
	Output     string
}

// Add adds the flags to the root, which then checks them.
func (g *Globals) Add(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&g.Kubeconfig, "kubeconfig", "", "path of the kubeconfig (default $KUBECONFIG, then ~/.kube/config)")
	f.StringVar(&g.Context, "context", "", "context in the kubeconfig")
	f.StringVar(&g.Sandbox, "sandbox", "", "use the sandbox of this name on this machine: its cluster, its AWS emulator and its queue")
	f.Lookup("sandbox").NoOptDefVal = sandboxstate.DefaultName
	f.StringVarP(&g.Output, "output", "o", OutputText, "output format: text, or json for scripts")
	root.PersistentPreRunE = g.check
}

func (g *Globals) check(cmd *cobra.Command, _ []string) error {
	switch g.Output {
	case OutputText, OutputJSON:
	case OutputYAML:
		if cmd.Annotations[TakesYAML] == "" {
			return UsageErrorf("%s does not support YAML: use -o text or -o json", cmd.CommandPath())
		}
	default:
		return UsageErrorf("unknown output format %q: use -o text or -o json", g.Output)
	}
	if g.Sandbox != "" && (g.Kubeconfig != "" || g.Context != "") {
		return UsageErrorf("--sandbox has its own cluster: remove --kubeconfig and --context")
	}
	return nil
}

// IsJSON reports whether the user wants JSON.
func (g *Globals) IsJSON() bool { return g.Output == OutputJSON }

// WriteJSON writes one value, indented.
func WriteJSON(out terminal.Stream, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	out.Printf("%s\n", text)
	return nil
}
