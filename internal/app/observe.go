package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"k8s.io/client-go/rest"
)

// The values of --mode.
const (
	ModeAct     = "Act"
	ModeObserve = "Observe"
)

// ParseMode reports whether the mode is Observe.
func ParseMode(mode string) (observe bool, err error) {
	if mode != ModeAct && mode != ModeObserve {
		return false, fmt.Errorf("--mode is %q: write %s or %s", mode, ModeAct, ModeObserve)
	}
	return mode == ModeObserve, nil
}

// checkMode reports a flag that mode Observe excludes.
func (c Config) checkMode() error {
	if c.Observe && c.CanaryInterval != 0 {
		return errors.New("--canary-interval writes to EventBridge, which --mode=Observe does not: leave one of them out")
	}
	return nil
}

// The mode Observe has two layers. The Interruption controller takes no step, and the
// controllers that do nothing but act are not started. The guards of this file refuse every other
// write at the clients, so that no part of this or a later release can forget the mode.

// guardCluster lets the clients of the API server write only Lifeboat's own objects, Leases and
// Events.
func (c Config) guardCluster(cluster *rest.Config) {
	if c.Observe {
		cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next} })
	}
}

// observer is a transport that refuses writes.
type observer struct{ next http.RoundTripper }

// RoundTrip sends the request if mode Observe allows it.
func (o observer) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if !reads && !mayWrite(r.URL.Path) {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it; there is nothing to lose
		}
		return nil, fmt.Errorf("refused %s %s: the controller runs with mode %s", r.Method, r.URL.Path, ModeObserve)
	}
	return o.next.RoundTrip(r)
}

// mayWrite reports whether a path is that of an object that the mode Observe writes.
func mayWrite(path string) bool {
	if before, rest, found := strings.Cut(path, "/apis/"); found && !strings.Contains(before, "/api/") {
		group, _, _ := strings.Cut(rest, "/")
		if group == "authentication.k8s.io" || group == "authorization.k8s.io" {
			return strings.HasSuffix(rest, "reviews") // questions about who scrapes metrics: they store nothing
		}
		return group == "lifeboat.dev" || group == "coordination.k8s.io" || group == "events.k8s.io"
	}
	_, rest, _ := strings.Cut(path, "/api/v1/namespaces/")
	parts := strings.Split(rest, "/")
	return len(parts) >= 2 && parts[1] == "events"
}

// guardCloud lets the AWS clients read, and take messages from Lifeboat's queue.
func (c Config) guardCloud(cloud aws.Config) aws.Config {
	if !c.Observe {
		return cloud
	}
	cloud.APIOptions = append(slices.Clone(cloud.APIOptions), func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("LifeboatObserve", refuseChange), middleware.After)
	})
	return cloud
}

func refuseChange(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	operation := awsmiddleware.GetOperationName(ctx)
	if !mayCall(operation) {
		return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("refused %s: the controller runs with mode %s", operation, ModeObserve)
	}
	return next.HandleInitialize(ctx, in)
}

// mayCall reports whether an operation changes nothing but messages of Lifeboat's own queue.
func mayCall(operation string) bool {
	reads := slices.ContainsFunc([]string{"Describe", "Get", "List", "Lookup", "Receive", "AssumeRole"}, func(verb string) bool {
		return strings.HasPrefix(operation, verb)
	})
	return reads || slices.Contains([]string{"DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch"}, operation)
}
