package version

import (
	"fmt"

	releases "k8s.io/apimachinery/pkg/util/version"
)

// Skew says why a client and a server do not fit; empty if they do, or if a version is
// not that of a release. The documentation promises that neighbouring minor versions fit.
func Skew(client, server string) string {
	c, err := releases.ParseGeneric(client)
	if err != nil {
		return ""
	}
	s, err := releases.ParseGeneric(server)
	if err != nil {
		return ""
	}
	apart := int(c.Minor()) - int(s.Minor())
	if c.Major() == s.Major() && apart >= -1 && apart <= 1 {
		return ""
	}
	return fmt.Sprintf("this program has version %s and the controller %s, more than one minor version apart: "+
		"what it shows can differ from what the controller does; use a program of the controller's version", client, server)
}
