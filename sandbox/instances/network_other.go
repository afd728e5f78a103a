//go:build !linux

package instances

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
)

var errLinuxOnly = errors.New("real instances need Linux")

const (
	namespaces  = 0
	powerButton = syscall.SIGTERM
)

type network struct{}

type link struct {
	name string
	pods netip.Prefix
}

func newNetwork(*netns.Namespace) (*network, error)                { return nil, errLinuxOnly }
func (n *network) close()                                          {}
func (n *network) attach(*netns.Namespace, link, netip.Addr) error { return errLinuxOnly }
func (n *network) unplug(link) error                               { return errLinuxOnly }
func (n *network) detach(link) error                               { return errLinuxOnly }
func enterAll(int) error                                           { return errLinuxOnly }
func room(int) error                                               { return errLinuxOnly }
