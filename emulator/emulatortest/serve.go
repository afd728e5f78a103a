// Package emulatortest runs emulated AWS accounts for tests.
package emulatortest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator"
)

// Serve runs an emulated account, with o's account and region, until the test
// ends. It returns the server and its URL.
func Serve(t testing.TB, o emulator.Options) (*emulator.Server, string) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	server, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return server, "http://" + listener.Addr().String()
}
