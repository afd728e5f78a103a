package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// Destinations says what webhooks may call besides public addresses by https.
// A policy's author chooses the URL, and the controller's network reaches more
// than the author's.
type Destinations struct {
	// HTTP allows the scheme http.
	HTTP bool
	// Private allows private addresses, such as those of the cluster.
	Private bool
	// Loopback allows loopback addresses, for tests and the sandbox.
	Loopback bool
}

// checkScheme returns an error if the URL's scheme is not allowed.
func (d Destinations) checkScheme(u *url.URL) error {
	if u.Scheme != "https" && !d.HTTP {
		return errors.New("the URL begins with http://: write https://, or set the chart's value webhooks.allowHTTP")
	}
	return nil
}

// check returns an error if webhooks may not call the address.
func (d Destinations) check(addr netip.Addr) error {
	addr = ipv4Of(addr.Unmap())
	switch {
	case addr.IsLoopback():
		if !d.Loopback {
			return refusedAddress(fmt.Sprintf("webhooks may not call the loopback address %s: write the URL of another host", addr))
		}
	case !addr.IsGlobalUnicast() || inAny(addr, "0.0.0.0/8", "fd00:ec2::/32"):
		// The instance metadata service is 169.254.169.254 or fd00:ec2::254.
		return refusedAddress(fmt.Sprintf("webhooks may not call the special address %s: write the URL of another host", addr))
	case addr.IsPrivate() || inAny(addr, "100.64.0.0/10", "198.18.0.0/15"):
		if !d.Private {
			return refusedAddress(fmt.Sprintf("webhooks may not call the private address %s: write the URL of another host, or set the chart's value webhooks.allowPrivate", addr))
		}
	}
	return nil
}

// ipv4Of returns the IPv4 address in an address of NAT64 (RFC 6052) or 6to4
// (RFC 3056), and any other address unchanged.
func ipv4Of(addr netip.Addr) netip.Addr {
	b := addr.As16()
	switch {
	case inAny(addr, "64:ff9b::/96"):
		return netip.AddrFrom4([4]byte(b[12:]))
	case inAny(addr, "2002::/16"):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

func inAny(addr netip.Addr, prefixes ...string) bool {
	for _, p := range prefixes {
		if netip.MustParsePrefix(p).Contains(addr.WithZone("")) {
			return true
		}
	}
	return false
}

// transport returns a transport that checks each address after name resolution,
// so that no name leads to a refused one. A proxy of the environment is called
// in any case; it has to limit the destinations itself.
func (d Destinations) transport() *http.Transport {
	checked := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address %q: %w", address, err)
		}
		return d.check(at.Addr())
	}}
	unchecked := &net.Dialer{Timeout: 10 * time.Second}
	var proxies sync.Map // host:port
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			proxy, err := http.ProxyFromEnvironment(r)
			if proxy != nil {
				proxies.Store(hostPort(proxy), true)
			}
			return proxy, err
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if _, isProxy := proxies.Load(address); isProxy {
				return unchecked.DialContext(ctx, network, address)
			}
			return checked.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// hostPort is the address that the transport dials for a proxy.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
