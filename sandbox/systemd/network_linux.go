package systemd

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
)

const (
	// Gateway is the address of the cloud's services on a Network.
	Gateway = "10.0.0.1"
	// Metadata is the address of the instance metadata service.
	Metadata = "169.254.169.254"
	address  = "10.0.0.5"
	cable    = "machine"

	networkFile = "[Match]\nName=eth0\n[Network]\nAddress=" + address + "/16\nGateway=" + Gateway + "\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
)

// Network connects a machine to the cloud's services. It is a network namespace for listeners of this
// process, and a cable between it and the machine.
type Network struct {
	space  *netns.Namespace
	handle *netlink.Handle
	down   bool
}

// NewNetwork makes a network whose cable is plugged.
func NewNetwork() (*Network, error) {
	space, err := netns.New()
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandleAt(vnetns.NsHandle(space.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the kernel's network: %w", err), space.Close())
	}
	n := &Network{space: space, handle: h}
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	for _, a := range []string{Gateway, Metadata} {
		if err == nil {
			err = h.AddrAdd(lo, &netlink.Addr{IPNet: host(a)})
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the network: %w", err), n.Close())
	}
	return n, nil
}

func host(a string) *net.IPNet {
	return &net.IPNet{IP: net.ParseIP(a).To4(), Mask: net.CIDRMask(32, 32)}
}

// Close releases the network. Listeners must be closed already.
func (n *Network) Close() error {
	n.handle.Close()
	return n.space.Close()
}

// Listen listens on one of the cloud's addresses, with a port.
func (n *Network) Listen(address string) (*net.TCPListener, error) { return n.space.Listen(address) }

// attach connects the namespace of a machine that has no interface yet.
func (n *Network) attach(space *netns.Namespace) error {
	a := netlink.NewLinkAttrs()
	a.Name = cable
	// The kernel removes the cable of an earlier boot some time after its namespace has ended.
	if old, err := n.handle.LinkByName(cable); err == nil {
		if err := n.handle.LinkDel(old); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("removing the cable of the last boot: %w", err)
		}
	}
	if err := n.handle.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: "eth0", PeerNamespace: netlink.NsFd(space.FD())}); err != nil {
		return fmt.Errorf("making the cable: %w", err)
	}
	return n.Plug(!n.down)
}

// Plug plugs or unplugs the cable. The machine sees that it has no carrier.
func (n *Network) Plug(in bool) error {
	n.down = !in
	link, err := n.handle.LinkByName(cable)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return nil // the machine has no power
	case err != nil:
		return fmt.Errorf("finding the cable: %w", err)
	case !in:
		return n.handle.LinkSetDown(link)
	}
	if err := n.handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("plugging the cable: %w", err)
	}
	return n.handle.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(address), Scope: netlink.SCOPE_LINK})
}
