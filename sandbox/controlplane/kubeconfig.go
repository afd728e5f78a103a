package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminUser  = "lifeboat-sandbox-admin"
	adminGroup = "system:masters" // bypasses authorisation, so it works before RBAC has its roles
)

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return filepath.Join(c.opts.Dir, "admin.kubeconfig") }

// RESTConfig returns the administrator's client configuration, without a
// client-side rate limit. The caller may change it.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// UserKubeconfig writes a kubeconfig for a user in groups and returns its path.
// The user may do what RBAC grants: at first, what any authenticated user may.
// A node's kubelet is the user system:node:NAME in the group system:nodes.
//
// The identity is a client certificate, so it needs no restart and lasts as long
// as the control plane's directory.
func (c *ControlPlane) UserKubeconfig(user string, groups ...string) (string, error) {
	path := c.userPath(user)
	return path, c.writeKubeconfig(path, c.URL(), user, groups)
}

// userPath is escaped, since user names may hold slashes, and colons, which
// separate paths in $KUBECONFIG.
func (c *ControlPlane) userPath(user string) string {
	return filepath.Join(c.opts.Dir, url.QueryEscape(user)+".kubeconfig")
}

func (c *ControlPlane) writeKubeconfig(path, server, user string, groups []string) error {
	certPEM, keyPEM, err := c.ca.issue(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth, nil)
	if err != nil {
		return err
	}
	const name = "sandbox" // the cluster's name in its wiring too: commands read it from here
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.ca.certPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}

func (c *ControlPlane) writeAdmin() error {
	if err := c.writeKubeconfig(c.Kubeconfig(), c.URL(), adminUser, []string{adminGroup}); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading back the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	c.admin = config
	return nil
}
