package command

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultRequestTimeout limits one API request if --request-timeout does not.
const DefaultRequestTimeout = 15 * time.Second

// Connection holds kubectl's flags for the connection to a cluster. They come from client-go:
// k8s.io/cli-runtime imports text/template, which makes a program much larger.
type Connection struct {
	Kubeconfig string
	Overrides  clientcmd.ConfigOverrides
	// RequestTimeout limits one API request. The client gets no timeout, because that would
	// also end a watch.
	RequestTimeout time.Duration
}

// Add adds the flags to the root.
func (c *Connection) Add(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig (default $KUBECONFIG, then ~/.kube/config)")
	clientcmd.BindOverrideFlags(&c.Overrides, f, connectionFlags())
}

// connectionFlags are the flags of kubectl with its names. --cluster is the name of the
// cluster in AWS here, and Lifeboat's objects have no namespace.
func connectionFlags() clientcmd.ConfigOverrideFlags {
	describe := func(f clientcmd.FlagInfo, text string) clientcmd.FlagInfo {
		f.Description = text
		return f
	}
	all := clientcmd.RecommendedConfigOverrideFlags("")
	all.CurrentContext = describe(all.CurrentContext, "context in the kubeconfig")
	all.Timeout = describe(all.Timeout, "time limit for one request to the API server, such as 30s; 0 means none (default 15s)")
	all.Timeout.Default = ""
	none := clientcmd.FlagInfo{}
	all.ContextOverrideFlags.ClusterName, all.ContextOverrideFlags.Namespace = none, none
	all.ContextOverrideFlags.AuthInfoName = describe(all.ContextOverrideFlags.AuthInfoName, "user in the kubeconfig")
	auth := &all.AuthOverrideFlags
	auth.Username, auth.Password = none, none // API servers have no basic authentication since Kubernetes 1.19
	auth.Impersonate = describe(auth.Impersonate, "user to impersonate")
	auth.ImpersonateGroups = describe(auth.ImpersonateGroups, "group to impersonate; repeatable")
	auth.ImpersonateUID = describe(auth.ImpersonateUID, "UID to impersonate")
	auth.Token = describe(auth.Token, "bearer token for the API server")
	auth.ClientCertificate = describe(auth.ClientCertificate, "path of a client certificate")
	auth.ClientKey = describe(auth.ClientKey, "path of the key of the client certificate")
	server := &all.ClusterOverrideFlags
	server.APIServer = describe(server.APIServer, "URL of the API server")
	server.APIServer.ShortName = "s"
	server.CertificateAuthority = describe(server.CertificateAuthority, "path of the certificate of the API server's authority")
	server.InsecureSkipTLSVerify = describe(server.InsecureSkipTLSVerify, "do not verify the API server's certificate; insecure")
	server.TLSServerName = describe(server.TLSServerName, "name in the API server's certificate (default: the name in its URL)")
	server.ProxyURL = describe(server.ProxyURL, "URL of a proxy to the API server")
	server.DisableCompression = none
	return all
}

// given lists the flags of the connection that the user set. A time limit has no effect on
// the sandbox's credentials, so it is valid there too.
func (c *Connection) given(cmd *cobra.Command) []string {
	f := connectionFlags()
	auth, server := f.AuthOverrideFlags, f.ClusterOverrideFlags
	names := []string{"kubeconfig"}
	for _, flag := range []clientcmd.FlagInfo{
		f.CurrentContext, f.ContextOverrideFlags.AuthInfoName, auth.ClientCertificate, auth.ClientKey, auth.Token,
		auth.Impersonate, auth.ImpersonateUID, auth.ImpersonateGroups, server.APIServer, server.CertificateAuthority,
		server.InsecureSkipTLSVerify, server.TLSServerName, server.ProxyURL,
	} {
		names = append(names, flag.LongName)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !cmd.Flags().Changed(name) })
	slices.Sort(names)
	return names
}

// check reads the time limit.
func (c *Connection) check() error {
	c.RequestTimeout = DefaultRequestTimeout
	if c.Overrides.Timeout == "" {
		return nil
	}
	limit, err := clientcmd.ParseTimeout(c.Overrides.Timeout)
	if err != nil || limit < 0 {
		return UsageErrorf("invalid --request-timeout %q: write a duration such as 30s, or 0 for no limit", c.Overrides.Timeout)
	}
	c.RequestTimeout, c.Overrides.Timeout = limit, ""
	return nil
}
