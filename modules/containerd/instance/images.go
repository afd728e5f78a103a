package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// importImages imports archives for the kubelet when containerd is ready.
func importImages(ctx context.Context, socket string, archives []string) error {
	ctx = namespaces.WithNamespace(ctx, "k8s.io") // the kubelet's namespace
	c, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, path := range archives {
		if err := importArchive(ctx, c, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// dial returns a client when containerd responds.
func dial(ctx context.Context, socket string) (*client.Client, error) {
	for {
		c, err := client.New(socket, client.WithTimeout(time.Second))
		if err == nil {
			if ok, _ := c.IsServing(ctx); ok {
				return c, nil
			}
			c.Close()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("containerd does not answer: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func importArchive(ctx context.Context, c *client.Client, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := c.Import(ctx, f)
	if err != nil {
		return err
	}
	for _, image := range found {
		if err := client.NewImage(c, image).Unpack(ctx, "overlayfs"); err != nil {
			return fmt.Errorf("unpacking %s: %w", image.Name, err)
		}
	}
	return nil
}
