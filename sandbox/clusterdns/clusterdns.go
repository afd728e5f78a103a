// Package clusterdns answers the DNS queries of pods for Services, as CoreDNS does: IPv4 addresses
// of NAME.NAMESPACE.svc.cluster.local. It knows no other names.
package clusterdns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Domain is the domain of the cluster.
const Domain = "cluster.local"

const (
	queryTimeout = 5 * time.Second
	// ttl is that of CoreDNS's plugin kubernetes, in seconds.
	ttl = 5
	// mostBytes is the length of the longest query without EDNS (RFC 1035, 4.2.1).
	mostBytes = 512
)

// Lookup returns the addresses of a Service; none if it does not exist, with false.
type Lookup func(ctx context.Context, namespace, name string) ([]netip.Addr, bool, error)

// Serve answers queries until the connection is closed.
func Serve(conn net.PacketConn, lookup Lookup) {
	for {
		query := make([]byte, mostBytes)
		n, from, err := conn.ReadFrom(query)
		if err != nil {
			return // closed
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
			defer cancel()
			// A client whose query cannot be read gets no answer, and one that has gone needs none.
			if response, err := answer(ctx, query[:n], lookup); err == nil {
				_, _ = conn.WriteTo(response, from)
			}
		}()
	}
}

// answer returns the response to a query.
func answer(ctx context.Context, query []byte, lookup Lookup) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, fmt.Errorf("reading the query: %w", err)
	}
	question, err := p.Question()
	if err != nil {
		return nil, fmt.Errorf("reading the question: %w", err)
	}
	response := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	addresses, exists, err := resolve(ctx, question.Name.String(), lookup)
	switch {
	case err != nil:
		response.RCode = dnsmessage.RCodeServerFailure
	case !exists:
		response.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		for _, a := range addresses {
			response.Answers = append(response.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: ttl},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return response.Pack()
}

// resolve looks a name up. Names with the search domains of a pod appended name no Service.
func resolve(ctx context.Context, name string, lookup Lookup) ([]netip.Addr, bool, error) {
	service, found := strings.CutSuffix(strings.ToLower(name), ".svc."+Domain+".")
	name, namespace, two := strings.Cut(service, ".")
	if !found || !two || strings.Contains(namespace, ".") {
		return nil, false, nil
	}
	return lookup(ctx, namespace, name)
}
