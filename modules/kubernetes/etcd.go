package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcd listens on unix sockets only: there is no port on which the API server
// of another control plane could attach itself to it. A unix URL's address must
// look like host:port; it names a file in the working directory.
const (
	etcdClientURL = "unix://etcd:0"
	etcdPeerURL   = "unix://etcd-peer:0"
)

// startEtcd starts the embedded etcd in dataDir, makes that the working
// directory (a relative socket name also escapes the limit of 107 bytes on
// socket paths) and returns when it serves.
func startEtcd(ctx context.Context, dataDir string) (*embed.Etcd, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	if err := os.Chdir(dataDir); err != nil {
		return nil, fmt.Errorf("entering the data directory: %w", err)
	}
	client, err := url.Parse(etcdClientURL)
	if err != nil {
		return nil, fmt.Errorf("parsing etcd's client address: %w", err)
	}
	peer, err := url.Parse(etcdPeerURL)
	if err != nil {
		return nil, fmt.Errorf("parsing etcd's peer address: %w", err)
	}

	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dataDir, "etcd")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// What a killed process has written is safe in the page cache; only a crash of the machine loses it.
	cfg.UnsafeNoFsync = true
	// A single member has nobody to wait for when it elects itself.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.LogLevel = "warn"

	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, fmt.Errorf("starting etcd: %w", err)
	case <-ctx.Done():
		etcd.Close()
		return nil, fmt.Errorf("starting etcd: %w", ctx.Err())
	case <-time.After(30 * time.Second):
		etcd.Close()
		return nil, errors.New("starting etcd: not ready after 30 s; see the log above")
	}
}
