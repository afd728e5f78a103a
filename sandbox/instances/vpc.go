package instances

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/lifeboat-dev/lifeboat/sandbox/clusterdns"
	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
)

// Registry is a registry of images that instances use by plain HTTP, if something serves there
// (VPC.Expose).
const Registry = gateway + ":5000"

// Addresses of a VPC. The emulated EC2 gives its instances addresses of
// 10.0.0.0/16, and leaves the first ones of each subnet free, as AWS does.
const (
	gateway  = "10.0.0.1"
	vpcBits  = 16
	metadata = "169.254.169.254" // of the instance metadata service, on every instance
	// podIdentity is of the EKS Pod Identity Agent. Here one serves all nodes, if there is one.
	podIdentity = "169.254.170.23"
	firstPods   = "10.244.0.0" // instance N has 10.244.N.0/24 for its pods
	mostPods    = 256          // ranges
)

// VPC is a network in its own namespace: a bridge for the instances and the control plane, and a
// route to every instance's pods. It ends with this process in every case.
type VPC struct {
	space *netns.Namespace
	net   *network

	mu   sync.Mutex // guards open
	open []io.Closer
}

// NewVPC makes a network with nothing on it.
func NewVPC() (*VPC, error) {
	space, err := netns.New()
	if err != nil {
		return nil, err
	}
	n, err := newNetwork(space)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the VPC: %w", err), space.Close())
	}
	return &VPC{space: space, net: n}, nil
}

// Address is the control plane's address for the instances.
func (v *VPC) Address() string { return gateway }

// Enter moves the calling thread permanently into the VPC, beside the control plane.
func (v *VPC) Enter() error { return v.space.Enter() }

// Listen listens on a TCP address beside the control plane.
func (v *VPC) Listen(address string) (*net.TCPListener, error) { return v.space.Listen(address) }

// Carry forwards connections from a listener of this machine to an address in the VPC, until Close.
func (v *VPC) Carry(l net.Listener, address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	dial := func(ctx context.Context) (net.Conn, error) { return v.space.Dial(ctx, address) }
	v.open = append(v.open, netns.NewRelay(l, dial))
}

// Expose forwards connections from an address in the VPC, where pods can reach it, to an address of
// this machine, until Close.
func (v *VPC) Expose(inside, address string) error {
	l, err := v.Listen(inside)
	if err != nil {
		return fmt.Errorf("opening a port in the VPC: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	v.open = append(v.open, netns.NewRelay(l, dial))
	return nil
}

// ServeDNS answers the DNS queries of pods, until Close.
func (v *VPC) ServeDNS(lookup clusterdns.Lookup) error {
	conn, err := v.space.ListenPacket(net.JoinHostPort(v.Address(), "53"))
	if err != nil {
		return fmt.Errorf("opening the DNS port in the VPC: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = append(v.open, conn)
	go clusterdns.Serve(conn, lookup)
	return nil
}

// Close ends what forwards and answers, and releases the network.
func (v *VPC) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for _, o := range v.open {
		errs = append(errs, o.Close())
	}
	v.open = nil
	v.net.close()
	return errors.Join(append(errs, v.space.Close())...)
}

// podRange is the n-th range of pod addresses.
func podRange(n int) (netip.Prefix, error) {
	if n >= mostPods {
		return netip.Prefix{}, fmt.Errorf("there are no more than %d instances with pods at once", mostPods)
	}
	a := netip.MustParseAddr(firstPods).As4()
	a[2] = byte(n)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24), nil
}
