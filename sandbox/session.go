package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"
)

// sessions is the endpoint from which lifeboatd gets temporary credentials. It answers as the EKS Pod
// Identity Agent does (EKS User Guide, "Learn how EKS Pod Identity grants pods access").
type sessions struct {
	listener net.Listener
	serve    *background
}

// newSessions serves credentials of a role that live that long. issue makes them.
func newSessions(issue func(until time.Time) (id, secret, token string), life time.Duration) (*sessions, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		until := time.Now().Add(life).Truncate(time.Second)
		id, secret, token := issue(until)
		// A caller that is gone needs no answer.
		_ = json.NewEncoder(w).Encode(map[string]string{
			"AccessKeyId": id, "SecretAccessKey": secret, "Token": token, "Expiration": until.UTC().Format(time.RFC3339),
		})
	})}
	return &sessions{listener: listener, serve: inBackground(func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { _ = server.Close() })
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})}, nil
}

// env are the variables of a program that gets its credentials here, and has no keys.
func (s *sessions) env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://" + s.listener.Addr().String() + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN=lifeboatd",
	}
}
