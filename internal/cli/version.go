package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// versionPatience limits the wait for a cluster that does not answer.
const versionPatience = 5 * time.Second

// versions is the output of `lifeboat version`.
type versions struct {
	version.Info
	// Server is the controller in the cluster; nil if it was not asked or not found.
	Server *serverVersion `json:"server,omitempty"`
	// Skew says that the two do not fit.
	Skew string `json:"skew,omitempty"`
}

// serverVersion is what the controller's Deployment says.
type serverVersion struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

func newVersion(s *session) *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the controller",
		Example: `  lifeboat version
  lifeboat version --client
  lifeboat version -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.version(cmd.Context(), clientOnly) },
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "print the version of this program only, without asking the cluster")
	return cmd
}

func (s *session) version(ctx context.Context, clientOnly bool) error {
	all := versions{Info: version.Get()}
	var failed error
	if !clientOnly {
		ctx, cancel := context.WithTimeout(ctx, versionPatience)
		defer cancel()
		all.Server, failed = s.serverVersion(ctx)
	}
	if all.Server != nil {
		all.Skew = version.Skew(s.clientVersion, all.Server.Version)
	}
	if s.isJSON() {
		return s.writeJSON(all)
	}
	s.out.Printf("lifeboat %s, %s, %s\n", all.Info, all.GoVersion, all.Platform)
	switch {
	case failed != nil:
		s.err.Printf("The controller's version is not known: %v\n", failed)
	case all.Server != nil:
		s.out.Printf("controller %s, %s\n", all.Server.Version, all.Server.Image)
	case !clientOnly:
		s.out.Printf("controller: there is no deployment %s/%s in this cluster\n", lifeboatNamespace, lifeboatController)
	}
	if all.Skew != "" {
		s.err.Printf("warning: %s\n", all.Skew)
	}
	return nil
}

// serverVersion reads the version of the controller; nil if the cluster has none.
func (s *session) serverVersion(ctx context.Context) (*serverVersion, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.controllerVersion(ctx)
}

func (c cluster) controllerVersion(ctx context.Context) (*serverVersion, error) {
	var own appsv1.Deployment
	found, err := c.findController(ctx, &own)
	if err != nil || !found {
		return nil, err
	}
	server := serverVersion{Version: own.Labels[versionLabel]}
	if containers := own.Spec.Template.Spec.Containers; len(containers) > 0 {
		server.Image = containers[0].Image
	}
	return &server, nil
}

// warnOfSkew writes a warning if the controller decides with the code of another release.
// A user who may not read the Deployment gets none.
func (s *session) warnOfSkew(ctx context.Context, c cluster) {
	server, err := c.controllerVersion(ctx)
	if err != nil || server == nil {
		return
	}
	if skew := version.Skew(s.clientVersion, server.Version); skew != "" {
		s.err.Printf("warning: %s\n", skew)
	}
}
