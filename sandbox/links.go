package sandbox

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/sandbox/link"
)

// The links of a sandbox, from one part to another.
const (
	LinkLifeboatAPI  = "lifeboatd-api"
	LinkLifeboatAWS  = "lifeboatd-aws"
	LinkAgentsAPI    = "agents-api"
	LinkKarpenterAPI = "karpenter-api"
	LinkKarpenterAWS = "karpenter-aws"
	LinkKubeletsAPI  = "kubelets-api"
)

// openLinks prepares the links, if the options ask for them.
func (s *Sandbox) openLinks() {
	if s.opts.Chaos {
		s.links = link.New(s.opts.Dir)
	}
}

func (s *Sandbox) closeLinks() {
	if s.links != nil {
		s.links.Close()
	}
}

// linked returns the URL of a server through a link.
func (s *Sandbox) linked(name, server string) (string, error) {
	if s.links == nil {
		return server, nil
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("linking %s: %w", name, err)
	}
	u.Host, err = s.links.Address(name, u.Host)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// linkedKubeconfig returns a copy of a kubeconfig that uses a link.
func (s *Sandbox) linkedKubeconfig(name, path string) (string, error) {
	if s.links == nil {
		return path, nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return "", fmt.Errorf("linking %s: %w", name, err)
	}
	for _, cluster := range config.Clusters {
		if cluster.Server, err = s.linked(name, cluster.Server); err != nil {
			return "", err
		}
	}
	out := strings.TrimSuffix(path, filepath.Ext(path)) + "." + name + ".kubeconfig"
	if err := clientcmd.WriteToFile(*config, out); err != nil {
		return "", fmt.Errorf("linking %s: %w", name, err)
	}
	return out, nil
}
