package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// shutdownLimit is when EC2 cuts the power of a machine that does not halt. EC2 documents only a
// few minutes; the kubelets of EKS take two and a half.
const shutdownLimit = 4 * time.Minute

// cloud is the AWS emulator, on a port that can be closed for a while.
type cloud struct {
	server *emulator.Server
	gate   *gate
	serve  *background
}

func newCloud(o Options, log *slog.Logger) (*cloud, error) {
	server, err := emulator.New(emulator.Options{
		Account: o.Account, Region: o.Region, Unkind: o.Unkind, Logger: log, Timing: ec2.Timing{ShutdownLimit: shutdownLimit},
	})
	if err != nil {
		return nil, err
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the AWS emulator: %w", err)
	}
	g := &gate{Listener: listener, through: map[net.Conn]struct{}{}}
	return &cloud{
		server: server, gate: g,
		serve: inBackground(func(ctx context.Context) error { return server.Serve(ctx, g) }),
	}, nil
}

func (c *cloud) stop() error {
	err := c.serve.stop()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (c *cloud) endpoint() string { return "http://" + c.gate.Addr().String() }

func (c *cloud) config() aws.Config {
	return aws.Config{
		Region:       c.server.Region(),
		BaseEndpoint: aws.String(c.endpoint()),
		HTTPClient:   awshttp.NewClient(),
		Credentials:  awshttp.StaticCredentials(accessKeyID, secretAccessKey),
	}
}

// gate is a listener that can be shut: it closes open connections, and rejects new ones.
type gate struct {
	net.Listener

	mu      sync.Mutex
	closed  bool
	through map[net.Conn]struct{}
}

// Accept returns the next accepted connection.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if !g.closed {
			g.through[conn] = struct{}{}
			g.mu.Unlock()
			return &gated{Conn: conn, gate: g}, nil
		}
		g.mu.Unlock()
		conn.Close()
	}
}

func (g *gate) shut(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	if closed {
		for conn := range g.through {
			conn.Close()
		}
	}
}

// gated is a connection of the gate.
type gated struct {
	net.Conn
	gate *gate
}

// Close closes it, and removes it from the gate.
func (c *gated) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.through, c.Conn)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
