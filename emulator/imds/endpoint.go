package imds

import (
	"context"
	"net"
	"net/http"
	"time"
)

// retryPort is the retry interval for a port that another process took while the instance was off.
const retryPort = 50 * time.Millisecond

// endpoint is one listener, open while its instance has power.
type endpoint struct {
	listen   func(context.Context) (net.Listener, error)
	listener net.Listener // nil while closed
	server   *http.Server
	powered  func() bool
	handler  http.Handler
	wake     chan struct{} // holds one token while the instance may have changed
	done     chan struct{}
}

// run opens and closes the listener with the instance's power.
func (e *endpoint) run(ctx context.Context) {
	defer e.shut()
	for {
		var again <-chan time.Time
		if !e.powered() {
			e.shut()
		} else if !e.open(ctx) {
			again = time.After(retryPort)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-again:
		}
	}
}

// open reports whether the listener is open now.
func (e *endpoint) open(ctx context.Context) bool {
	if e.server != nil {
		return true
	}
	if e.listener == nil {
		l, err := e.listen(ctx)
		if err != nil {
			return false
		}
		e.listener = l
	}
	server := &http.Server{
		Handler: e.handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	e.server = server
	// Serve always returns an error, which says that it was shut.
	go func(l net.Listener) { _ = server.Serve(l) }(e.listener)
	return true
}

// shut closes the listener and every connection, as a power cut does.
func (e *endpoint) shut() {
	if e.server != nil {
		_ = e.server.Close()
	}
	if e.listener != nil {
		// The server closes it too, unless it has not started to serve.
		_ = e.listener.Close()
	}
	e.server, e.listener = nil, nil
}
