package instances

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
)

// network is the kernel's side of a VPC.
type network struct {
	handle *netlink.Handle
	bridge netlink.Link
}

// link is an instance's end on the bridge.
type link struct {
	name string
	pods netip.Prefix
}

func newNetwork(space *netns.Namespace) (*network, error) {
	h, err := handleIn(space)
	if err != nil {
		return nil, err
	}
	a := attrs("vpc")
	// A bridge without its own address uses the lowest of its links', and another one when that
	// instance ends. The others would then send packets for the router to the old address for
	// seconds.
	a.HardwareAddr = net.HardwareAddr{0x02, 0, 10, 0, 0, 1}
	n := &network{handle: h, bridge: &netlink.Bridge{LinkAttrs: a}}
	if err := n.build(space); err != nil {
		h.Close()
		return nil, err
	}
	return n, nil
}

func (n *network) close() { n.handle.Close() }

func handleIn(space *netns.Namespace) (*netlink.Handle, error) {
	h, err := netlink.NewHandleAt(vnetns.NsHandle(space.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("talking to the kernel's network: %w", err)
	}
	return h, nil
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func (n *network) build(space *netns.Namespace) error {
	if err := bringUp(n.handle, "lo", podIdentity+"/32"); err != nil {
		return err
	}
	if err := n.handle.LinkAdd(n.bridge); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	if err := bringUp(n.handle, "vpc", fmt.Sprintf("%s/%d", gateway, vpcBits)); err != nil {
		return err
	}
	return space.Do(func() error {
		return sysctl(map[string]string{
			"ip_forward": "1",
			// Instances use it as the router; it must not redirect them to each other.
			"conf/all/send_redirects": "0", "conf/default/send_redirects": "0", "conf/vpc/send_redirects": "0",
			"conf/all/rp_filter": "0", "conf/vpc/rp_filter": "0",
		})
	})
}

// attach connects an instance to the bridge: its address, a default route, and a range for its
// pods. It runs before anything else is set up in the instance's namespace.
func (n *network) attach(space *netns.Namespace, l link, address netip.Addr) error {
	a := attrs(l.name)
	a.MasterIndex = n.bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: a, PeerName: "eth0", PeerNamespace: netlink.NsFd(space.FD())}
	if err := n.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("making the link: %w", err)
	}
	if err := bringUp(n.handle, l.name, ""); err != nil {
		return err
	}
	inside, err := handleIn(space)
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := bringUp(inside, "lo", metadata+"/32"); err != nil {
		return err
	}
	if err := bringUp(inside, "eth0", fmt.Sprintf("%s/%d", address, vpcBits)); err != nil {
		return err
	}
	for _, r := range []netlink.Route{
		{Gw: net.ParseIP(gateway)},
		// Packets for a deleted pod would otherwise loop between instance and router.
		{Dst: ipNet(l.pods), Type: unix.RTN_BLACKHOLE},
	} {
		if err := inside.RouteAdd(&r); err != nil {
			return fmt.Errorf("setting the instance's route %s: %w", r.String(), err)
		}
	}
	if err := n.handle.RouteReplace(&netlink.Route{Dst: ipNet(l.pods), Gw: address.AsSlice()}); err != nil {
		return fmt.Errorf("setting the route to the instance's pods: %w", err)
	}
	return space.Do(func() error { return sysctl(map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0"}) })
}

// unplug takes the link down, at once.
func (n *network) unplug(l link) error {
	dev, err := n.handle.LinkByName(l.name)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the link: %w", err)
	}
	return n.handle.LinkSetDown(dev)
}

// detach removes what attach created and still exists.
func (n *network) detach(l link) error {
	var errs []error
	// The route goes with the link's address resolution only, so by name.
	if err := n.handle.RouteDel(&netlink.Route{Dst: ipNet(l.pods)}); err != nil && !errors.Is(err, unix.ESRCH) {
		errs = append(errs, fmt.Errorf("removing the route to its pods: %w", err))
	}
	dev, err := n.handle.LinkByName(l.name)
	switch {
	case gone(err):
	case err != nil:
		errs = append(errs, fmt.Errorf("finding the link: %w", err))
	default:
		if err := n.handle.LinkDel(dev); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("removing the link: %w", err))
		}
	}
	return errors.Join(errs...)
}

func gone(err error) bool {
	var none netlink.LinkNotFoundError
	return errors.As(err, &none)
}

func bringUp(h *netlink.Handle, name, address string) error {
	dev, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	if address != "" {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return fmt.Errorf("address %s of %s: %w", address, name, err)
		}
		if err := h.AddrAdd(dev, a); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", name, address, err)
		}
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("bringing %s up: %w", name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// sysctl sets IPv4 settings of the namespace that the calling thread is in.
func sysctl(values map[string]string) error {
	for name, value := range values {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting the network: %w", err)
		}
	}
	return nil
}
