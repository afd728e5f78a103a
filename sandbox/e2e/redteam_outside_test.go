//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// principal may send messages to Lifeboat's queue and events to the default bus of the account.
// Its messages can have a node drained, and must not end its instance or cut the grace of a pod.
func (r *redTeam) principal() attacker {
	bus := eventbridge.NewFromConfig(r.AWSConfig())
	st := r.State()
	forge := func(ctx context.Context, rnd *rand.Rand, id, detailType string, at time.Time, detail map[string]string) error {
		detail["instance-id"] = r.forged[rnd.IntN(len(r.forged))].ID
		body := envelope(id, detailType, st.Account, st.Region, at, detail)
		_, err := r.sqs.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &st.QueueURL, MessageBody: &body})
		return err
	}
	put := func(ctx context.Context, source, detailType, detail string) error {
		_, err := bus.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
			Source: &source, DetailType: &detailType, Detail: &detail, Time: aws.Time(time.Now()),
		}}})
		return err
	}
	name := func(rnd *rand.Rand) string { return fmt.Sprintf("forged-%d", rnd.Uint32()) }
	return attacker{"account principal", []act{
		{name: "forges a spot warning", do: func(ctx context.Context, rnd *rand.Rand) error {
			return forge(ctx, rnd, name(rnd), spotWarning, time.Now(), map[string]string{"instance-action": "terminate"})
		}},
		{name: "forges a spot warning of another century", do: func(ctx context.Context, rnd *rand.Rand) error {
			years := []int{-900, -30, 1, 73, 6000}
			return forge(ctx, rnd, name(rnd), spotWarning, time.Now().AddDate(years[rnd.IntN(len(years))], 0, 0), map[string]string{"instance-action": "terminate"})
		}},
		{name: "forges the end of an instance", do: func(ctx context.Context, rnd *rand.Rand) error {
			states := []string{"stopping", "stopped", "shutting-down", "terminated"}
			return forge(ctx, rnd, name(rnd), stateChange, time.Now().Add(time.Duration(rnd.IntN(120)-60)*time.Second),
				map[string]string{"state": states[rnd.IntN(len(states))]})
		}},
		{name: "forges a drill", do: func(ctx context.Context, rnd *rand.Rand) error {
			return forge(ctx, rnd, "lifeboat-drill-"+name(rnd), stateChange, time.Now(), map[string]string{"state": "terminated"})
		}},
		{name: "sends what is no message", do: func(ctx context.Context, rnd *rand.Rand) error {
			body := strings.Repeat(string(rune('{'+rnd.IntN(3))), 1+rnd.IntN(200<<10))
			_, err := r.sqs.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &st.QueueURL, MessageBody: &body})
			return err
		}},
		{name: "sends padded probes", do: func(ctx context.Context, rnd *rand.Rand) error {
			for range 5 {
				detail := fmt.Sprintf(`{"lifeboat-probe":{"cluster":"","rule":"r%d","id":"%d"},"pad":"%s"}`,
					rnd.Uint32(), rnd.Uint32(), strings.Repeat("x", rnd.IntN(200<<10)))
				if err := put(ctx, "lifeboat.dev", spotWarning, detail); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "sends events of other sources", do: func(ctx context.Context, rnd *rand.Rand) error {
			sources := []string{"my.app", "lifeboat.dev", "aws.ec2.fake", "kubernetes"}
			return put(ctx, sources[rnd.IntN(len(sources))], spotWarning, fmt.Sprintf(`{"instance-id":%q}`, r.bystanders[0].ID))
		}},
	}}
}

// neighbour reaches the addresses at which lifeboatd listens.
func (r *redTeam) neighbour() attacker {
	request := func(ctx context.Context, method, path string) error {
		for _, part := range r.State().Parts {
			if part.Name != "lifeboatd" {
				continue
			}
			u, err := url.Parse(part.Address)
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(ctx, method, "http://"+u.Host+path, strings.NewReader(strings.Repeat("x", 1<<16)))
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
		return errNothingToDo
	}
	return attacker{"network neighbour", []act{
		{name: "calls every path with every method", do: func(ctx context.Context, rnd *rand.Rand) error {
			methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodTrace}
			paths := []string{"/metrics", "/", "/debug/pprof/", "/debug/pprof/heap", "/healthz", "/readyz?verbose", "/../../etc/passwd"}
			return request(ctx, methods[rnd.IntN(len(methods))], paths[rnd.IntN(len(paths))])
		}},
		{name: "opens connections and sends nothing", do: func(ctx context.Context, rnd *rand.Rand) error {
			for _, part := range r.State().Parts {
				u, err := url.Parse(part.Address)
				if part.Name != "lifeboatd" || err != nil {
					continue
				}
				for range 1 + rnd.IntN(20) {
					c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
					if err != nil {
						return err
					}
					r.t.Cleanup(func() { c.Close() })
				}
			}
			return nil
		}},
	}}
}
