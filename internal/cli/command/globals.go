package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// The values of -o.
const (
	OutputText = "text"
	OutputJSON = "json"
	OutputYAML = "yaml"
	OutputName = "name"
)

// outputs is the annotation with the values of -o that a command supports.
const outputs = "lifeboat.dev/outputs"

// Outputs declares the values of -o that a command supports. Without it they are text and
// json.
func Outputs(cmd *cobra.Command, formats ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[outputs] = strings.Join(formats, " ")
	return cmd
}

// ObjectOutputs declares the values of -o of a command that prints API objects.
func ObjectOutputs(cmd *cobra.Command) *cobra.Command {
	return Outputs(cmd, OutputText, OutputJSON, OutputYAML, OutputName)
}

func outputsOf(cmd *cobra.Command) []string {
	if list := cmd.Annotations[outputs]; list != "" {
		return strings.Fields(list)
	}
	return []string{OutputText, OutputJSON}
}

// alternatives lists formats as flags.
func alternatives(formats []string) string {
	last := len(formats) - 1
	return "-o " + strings.Join(formats[:last], ", -o ") + " or -o " + formats[last]
}

// DescribeOutputs adds the supported values of -o to the help of each command.
func DescribeOutputs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		DescribeOutputs(sub)
	}
	if cmd.HasSubCommands() || cmd.DisableFlagParsing {
		return
	}
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n\nOutput formats (-o): " + strings.Join(outputsOf(cmd), ", ") + "."
}

// Globals are the flags that every command has.
type Globals struct {
	Connection

	Sandbox string
	Output  string
}

// Add adds the flags to the root, which then checks them. The environment selects the sandbox
// if the flag does not.
func (g *Globals) Add(root *cobra.Command, getenv func(string) string) {
	f := root.PersistentFlags()
	f.StringVar(&g.Sandbox, "sandbox", "", "name of a sandbox on this machine, to use its cluster, its AWS emulator and its queue (default $"+sandboxstate.NameEnv+")")
	g.Sandbox = getenv(sandboxstate.NameEnv)
	f.StringVarP(&g.Output, "output", "o", OutputText, "output format: text or json; for API objects also yaml or name")
	root.PersistentPreRunE = g.check
}

func (g *Globals) check(cmd *cobra.Command, _ []string) error {
	if known := outputsOf(cmd); !slices.Contains(known, g.Output) {
		return UsageErrorf("%s does not support the output format %q: use %s", cmd.CommandPath(), g.Output, alternatives(known))
	}
	given := g.given(cmd)
	if g.Sandbox != "" && len(given) > 0 {
		selects, remove := "--sandbox", "remove --sandbox"
		if !cmd.Flags().Changed("sandbox") {
			selects, remove = "$"+sandboxstate.NameEnv, "run `unset "+sandboxstate.NameEnv+"` and the like for AWS_ENDPOINT_URL"
		}
		return UsageErrorf("%s selects the sandbox %s, which has its own cluster and credentials: %s, or remove --%s", selects, g.Sandbox, remove, strings.Join(given, " and --"))
	}
	return g.Connection.check()
}

// IsJSON reports whether the user wants JSON.
func (g *Globals) IsJSON() bool { return g.Output == OutputJSON }

// WriteJSON writes one value, indented.
func WriteJSON(out terminal.Stream, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	out.Printf("%s\n", terminal.JSON(text))
	return nil
}
