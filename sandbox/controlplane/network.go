package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

// The API server's client certificate for kubelets.
const (
	kubeletClientCert = "kubelet-client.crt"
	kubeletClientKey  = "kubelet-client.key"
)

// listen takes a loopback port of this machine. In a separate network the control plane listens on
// the same port there, so that one kubeconfig works inside and outside; connections to the loopback
// port are forwarded.
func (c *ControlPlane) listen() (*net.TCPListener, error) {
	l, err := listenAnywhere()
	if err != nil {
		return nil, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listening on %s", l.Addr()), l.Close())
	}
	c.port = addr.Port
	if c.opts.Network == nil {
		return l, nil
	}
	inside, err := c.listenOn(c.port)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := c.writeKubeletClient(); err != nil {
		return nil, errors.Join(err, l.Close(), inside.Close())
	}
	c.opts.Network.Carry(l, net.JoinHostPort(loopback, strconv.Itoa(c.port)))
	return inside, nil
}

func (c *ControlPlane) listenOn(port int) (*net.TCPListener, error) {
	if c.opts.Network == nil {
		return listenTCP(port)
	}
	return c.opts.Network.Listen(net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
}

// enter runs on the child's thread.
func (c *ControlPlane) enter() func() error {
	if c.opts.Network == nil {
		return nil
	}
	return c.opts.Network.Enter
}

// networkArgs are the API server's flags with real kubelets and pods.
func (c *ControlPlane) networkArgs() []string {
	if c.opts.Network == nil {
		return nil
	}
	return []string{
		"--advertise-address=" + c.opts.Network.Address(),
		"--endpoint-reconciler-type=lease", // pods find the service "kubernetes"
		"--kubelet-client-certificate=" + filepath.Join(c.path("pki"), kubeletClientCert),
		"--kubelet-client-key=" + filepath.Join(c.path("pki"), kubeletClientKey),
	}
}

// writeKubeletClient writes the API server's identity for kubelet requests such as logs and exec.
func (c *ControlPlane) writeKubeletClient() error {
	name := pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{adminGroup}}
	certPEM, keyPEM, err := c.ca.issue(name, x509.ExtKeyUsageClientAuth, nil)
	if err != nil {
		return err
	}
	return errors.Join(writeFile(c.path("pki"), kubeletClientCert, certPEM), writeFile(c.path("pki"), kubeletClientKey, keyPEM))
}

// InsideURL is the API server's address for the machines of its network.
func (c *ControlPlane) InsideURL() string {
	if c.opts.Network == nil {
		return c.URL()
	}
	return "https://" + net.JoinHostPort(c.opts.Network.Address(), strconv.Itoa(c.port))
}

// CACert is the certificate authority's certificate, in PEM.
func (c *ControlPlane) CACert() []byte { return c.ca.certPEM }

// InsideKubeconfig is UserKubeconfig for a user on a machine of its network.
func (c *ControlPlane) InsideKubeconfig(user string, groups ...string) (string, error) {
	path := c.userPath("inside-" + user)
	return path, c.writeKubeconfig(path, c.InsideURL(), user, groups)
}
