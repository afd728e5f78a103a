package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/migrate"
	"github.com/lifeboat-dev/lifeboat/internal/migrate/nth"
)

// exitManualWork: some input has no equivalent and needs manual work.
const exitManualWork = 3

const migrateHelp = `Convert the files of another tool, or of an old version, to what this cluster needs.
Nothing is applied: the result goes to standard output, and each change and each
problem goes to standard error. The severities of problems are:
  broken   there is no equivalent: it needs manual work
  warning  nodes or pods may behave differently than you expect
  info     the text changed, and its meaning did not`

const migrateKarpenterHelp = `Convert Karpenter manifests from v1beta1, which Karpenter 1.1 and later reject,
to v1. The manifests go to standard output. Each change and each problem goes to
standard error, with one of these severities:
  broken   v1 has no equivalent: the field is unchanged, or cannot work as it is
  warning  nodes or pods may behave differently than you expect
  info     the manifest changed, and its meaning did not

Documents that need no change are printed unchanged. Comments and the order of
fields are kept. If a key occurs twice, the last one is kept, as kubectl does.
Nothing is applied. Converting the output again changes nothing.

Pass NodePools together with the EC2NodeClasses that they refer to, because the
kubelet settings move from the NodePool to the EC2NodeClass.

Exit codes: 0 all is converted; 1 a file cannot be read; 2 wrong usage; 3 some
input has no equivalent and needs manual work.`

const migrateNTHHelp = `Convert the settings of AWS Node Termination Handler (NTH) to an InterruptionPolicy.
The settings are the values of its Helm chart, or its Deployment or DaemonSet. The
command prints the policy, or nothing if Lifeboat's defaults do the same. On standard
error it explains what replaces each setting.

Exit codes: 0 all is converted; 1 a file cannot be read; 2 wrong usage; 3 some
setting has no equivalent and needs manual work.`

// converter converts files to the manifests of a [migrate.Result].
type converter func([]migrate.File) (*migrate.Result, error)

func newMigrate(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "migrate",
		Short: "Convert Karpenter v1beta1 manifests to v1, or NTH settings to a policy",
		Long:  migrateHelp,
		Example: `  # Convert old manifests of Karpenter
  lifeboat migrate karpenter -f karpenter.yaml > karpenter-v1.yaml

  # Convert the settings of AWS Node Termination Handler
  lifeboat migrate nth -f values.yaml > policy.yaml`,
	})
	cmd.AddCommand(
		s.newConverter(migrate.Convert, &cobra.Command{
			Use:   "karpenter -f FILE",
			Short: "Convert Karpenter manifests from v1beta1 to v1",
			Long:  migrateKarpenterHelp,
			Example: `  lifeboat migrate karpenter -f karpenter.yaml > karpenter-v1.yaml

  # Convert the manifests of a cluster
  kubectl get nodepools,ec2nodeclasses -o yaml | lifeboat migrate karpenter -f -

  # Fill in the variables of a guide, and apply the result
  lifeboat migrate karpenter -f guide.yaml | envsubst '${CLUSTER_NAME}' | kubectl apply -f -

  # For scripts
  lifeboat migrate karpenter -f karpenter.yaml -o json | jq '.findings[] | select(.severity == "broken")'`,
		}),
		s.newConverter(nth.Convert, &cobra.Command{
			Use:   "nth -f FILE",
			Short: "Convert the settings of AWS Node Termination Handler to a policy",
			Long:  migrateNTHHelp,
			Example: `  lifeboat migrate nth -f values.yaml > policy.yaml

  # Convert the settings of a running Deployment
  kubectl -n kube-system get deployment aws-node-termination-handler -o yaml | lifeboat migrate nth -f -`,
		}),
	)
	return cmd
}

// newConverter completes a command that converts files.
func (s *session) newConverter(convert converter, cmd *cobra.Command) *cobra.Command {
	var files []string
	cmd.Args = arguments(0, 0, "no arguments; files are given with -f")
	cmd.RunE = func(*cobra.Command, []string) error {
		if len(files) == 0 {
			return usageErrorf("there is nothing to convert: add -f FILE; - is standard input")
		}
		return s.migrate(convert, files)
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "file to convert; - is standard input; repeatable")
	return cmd
}

func (s *session) migrate(convert converter, names []string) error {
	var files []migrate.File
	for _, name := range names {
		file, err := s.read(name)
		if err != nil {
			return err
		}
		files = append(files, migrate.File{Name: file.Name, Data: file.Data})
	}
	result, err := convert(files)
	var syntax *migrate.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Template:
		return fmt.Errorf("%w; the file looks like a template: render it first, for example with helm template", err)
	case err != nil:
		return err
	}
	counts := countedFindings(result.Findings)
	if err := s.reportConversion(result, counts); err != nil {
		return err
	}
	if counts[finding.Broken] > 0 {
		return exitError{Code: exitManualWork}
	}
	return nil
}

func countedFindings(all []migrate.Finding) map[finding.Severity]int {
	counts := map[finding.Severity]int{finding.Broken: 0, finding.Warning: 0, finding.Info: 0}
	for _, f := range all {
		counts[f.Severity]++
	}
	return counts
}

// conversionReport is the output of migrate with -o json.
type conversionReport struct {
	// Output holds the manifests, in YAML.
	Output    string                   `json:"output"`
	Converted int                      `json:"converted"`
	Unchanged int                      `json:"unchanged"`
	Findings  []migrate.Finding        `json:"findings"`
	Counts    map[finding.Severity]int `json:"counts"`
}

func (s *session) reportConversion(r *migrate.Result, counts map[finding.Severity]int) error {
	migrate.Sort(r.Findings)
	if s.isJSON() {
		return s.writeJSON(conversionReport{string(r.Output), r.Converted, r.Unchanged, r.Findings, counts})
	}
	s.out.Printf("%s", r.Output)
	last := finding.Severity("")
	for _, f := range r.Findings {
		if f.Severity != last {
			s.err.Printf("%s\n", s.err.Paint(severityStyle(f.Severity), strings.ToUpper(string(f.Severity))))
			last = f.Severity
		}
		s.reportChange(f)
	}
	s.err.Printf("%s\n", conversionSummary(r, counts))
	return nil
}

func severityStyle(severity finding.Severity) terminal.Style {
	switch severity {
	case finding.Broken:
		return terminal.Bad
	case finding.Info:
		return terminal.Dim
	}
	return terminal.Warn
}

func (s *session) reportChange(f migrate.Finding) {
	where := fmt.Sprintf("%s:%d", f.File, f.Line)
	title := strings.TrimSpace(f.Object + "  " + f.Path)
	s.err.Printf("  %s  %s\n    %s\n", s.err.Paint(terminal.Bold, title), s.err.Paint(terminal.Dim, f.ID+"  "+where), f.Problem)
	if f.Fix != "" {
		s.err.Printf("    %s %s\n", s.err.Paint(terminal.Good, "→"), f.Fix)
	}
}

// conversionSummary returns the last line of the report.
func conversionSummary(r *migrate.Result, counts map[finding.Severity]int) string {
	if len(r.Output) == 0 {
		return "There was nothing to convert."
	}
	if r.Converted == 0 && len(r.Findings) == 0 {
		return fmt.Sprintf("There was nothing to convert in %s.", counted(r.Unchanged, "document"))
	}
	parts := []string{counted(r.Converted, "document") + " converted", fmt.Sprintf("%d unchanged", r.Unchanged)}
	if n := counts[finding.Broken]; n > 0 {
		parts = append(parts, counted(n, "problem")+" to fix by hand")
	}
	if n := counts[finding.Warning]; n > 0 {
		parts = append(parts, counted(n, "warning"))
	}
	return strings.Join(parts, ", ") + "."
}
