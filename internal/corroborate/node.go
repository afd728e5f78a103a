package corroborate

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Verdict is whether facts agree. Both other answers are a reason to wait.
type Verdict struct {
	Answer Answer
	// Why explains any answer but Agree, as a clause.
	Why string
}

// Answer is one word.
type Answer string

// The answers.
const (
	// Agree: the facts agree.
	Agree Answer = "Agree"
	// Differ: the facts contradict each other.
	Differ Answer = "Differ"
	// Unknown: a fact is missing.
	Unknown Answer = "Unknown"
)

// Agrees reports whether the facts agree.
func (v Verdict) Agrees() bool { return v.Answer == Agree }

func differ(format string, args ...any) Verdict { return Verdict{Differ, fmt.Sprintf(format, args...)} }

func unknown(format string, args ...any) Verdict {
	return Verdict{Unknown, fmt.Sprintf(format, args...)}
}

// Node decides whether a Node is the Node of an instance that EC2 describes; nil: EC2 does not
// know it. The name of the Node decides if it is one that EC2 gives: ip-10-0-1-5.ec2.internal or
// i-0a1b2c3d4e5f60718.ec2.internal (EC2 User Guide, "EC2 instance hostnames and domains"), or the
// bare instance id, as kOps names nodes. For any other name the addresses of the Node decide.
// They are weaker: the kubelet or the cloud controller of its provider id has written them.
func Node(node *corev1.Node, i *cloud.Instance) Verdict {
	if i == nil {
		return unknown("EC2 does not know the instance")
	}
	name, dns := label(node.Name), label(i.DNSName)
	addresses := ipsOf(i.Addresses)
	ip, isIP := ipIn(name)
	switch {
	case name == strings.ToLower(i.ID), dns != "" && name == dns:
		return Verdict{Answer: Agree}
	case isIP && slices.Contains(addresses, ip):
		return Verdict{Answer: Agree}
	case dns == "" && len(addresses) == 0:
		return unknown("EC2 gives no name or address of instance %s, which is %s", i.ID, i.State)
	case isIP, namesInstance(name):
		return differ("its name %s is not that of instance %s, which EC2 calls %s", node.Name, i.ID, i.DNSName)
	}
	return byAddress(node, i, addresses)
}

func byAddress(node *corev1.Node, i *cloud.Instance, addresses []netip.Addr) Verdict {
	var own []string
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			own = append(own, a.Address)
		}
	}
	switch {
	case len(own) == 0:
		return unknown("it has no address of type InternalIP to compare with those of instance %s", i.ID)
	case slices.ContainsFunc(ipsOf(own), func(ip netip.Addr) bool { return slices.Contains(addresses, ip) }):
		return Verdict{Answer: Agree}
	}
	return differ("its address %s is none of instance %s, which EC2 gives %s", strings.Join(own, ", "), i.ID, strings.Join(i.Addresses, ", "))
}

// label returns the first label of a DNS name: the domain can be another one, because DHCP
// options can set it.
func label(name string) string {
	first, _, _ := strings.Cut(strings.ToLower(name), ".")
	return first
}

var instanceName = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// namesInstance reports whether a label has the form of an instance id.
func namesInstance(label string) bool { return instanceName.MatchString(label) }

// ipIn returns the IPv4 address in an IP name such as ip-10-0-1-5.
func ipIn(label string) (netip.Addr, bool) {
	rest, ok := strings.CutPrefix(label, "ip-")
	if !ok {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(strings.ReplaceAll(rest, "-", "."))
	return ip, err == nil
}

func ipsOf(texts []string) []netip.Addr {
	var ips []netip.Addr
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// Claim is what Karpenter's NodeClaim says about its Node.
type Claim struct {
	Name     string
	UID      types.UID
	NodeName string
	// InstanceID is the instance of status.providerID.
	InstanceID string
}

// NodeOfClaim decides whether a NodeClaim is that of a Node, and of the instance. Karpenter
// writes the status of a NodeClaim. The kubelet can name any owner when it registers its Node.
func NodeOfClaim(node *corev1.Node, c Claim, instanceID string) Verdict {
	owned := slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == c.Name && o.UID == c.UID })
	switch {
	case c.InstanceID != instanceID:
		return differ("NodeClaim %s is of instance %s, not %s", c.Name, c.InstanceID, instanceID)
	case c.NodeName == "":
		return unknown("NodeClaim %s has no node yet", c.Name)
	case c.NodeName != node.Name:
		return differ("NodeClaim %s is of node %s, not %s", c.Name, c.NodeName, node.Name)
	case !owned:
		return differ("node %s is not owned by NodeClaim %s with the UID %s", node.Name, c.Name, c.UID)
	}
	return Verdict{Answer: Agree}
}
