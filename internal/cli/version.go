package cli

import (
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/version"
)

func newVersion(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  lifeboat version
  lifeboat version -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			if s.isJSON() {
				return s.writeJSON(info)
			}
			s.out.Printf("lifeboat %s, %s, %s\n", info, info.GoVersion, info.Platform)
			return nil
		},
	}
}
