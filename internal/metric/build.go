package metric

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/version"
)

var buildInfo = Definition{
	Name: "lifeboat_build_info", Type: Gauge, Unit: "always 1",
	Help: "The running build, in the labels. The value is always 1.",
	Labels: []Label{
		OneOf("component", "controller", "agent"), Open("version", "the release, or dev"),
		Open("commit", "the source commit, or empty"), Open("goversion", "the version of the Go toolchain"),
	},
	Lazy: true,
}

// Definitions are the metrics of this package.
func Definitions() []Definition { return []Definition{buildInfo} }

// RegisterBuild registers lifeboat_build_info for a component: controller or agent.
func RegisterBuild(registerer prometheus.Registerer, component string) error {
	b, g := version.Get(), buildInfo.NewGauges()
	g.WithLabelValues(component, b.Version, b.Commit, b.GoVersion).Set(1)
	return Register(registerer, "the build", g)
}
