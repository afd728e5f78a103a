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
	"k8s.io/klog/v2"
)

// etcd listens on unix sockets only, so the API server of another control plane
// cannot connect to it. A unix URL's address must look like host:port; it names
// a file in the working directory.
const (
	etcdClientURL = "unix://etcd:0"
	etcdPeerURL   = "unix://etcd-peer:0"
)

// enterDataDir makes dataDir the working directory, in which etcd's sockets are.
// Their names are relative because socket paths are limited to 107 bytes.
func enterDataDir(dataDir string) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	if err := os.Chdir(dataDir); err != nil {
		return fmt.Errorf("entering the data directory: %w", err)
	}
	return nil
}

// startEtcd starts etcd in dataDir, which must be the working directory, and
// returns when it serves.
func startEtcd(ctx context.Context, dataDir string, fsync bool) (*embed.Etcd, error) {
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
	// Without fsync a killed process loses nothing, because the page cache outlives it. Only a
	// crash of the machine loses data.
	cfg.UnsafeNoFsync = !fsync
	// A single member elects itself and need not wait for others.
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

// runEtcd runs etcd alone until ctx ends.
func runEtcd(ctx context.Context, o etcdOptions) error {
	if err := enterDataDir(o.dataDir); err != nil {
		return err
	}
	etcd, err := startEtcd(ctx, o.dataDir, o.fsync)
	if err != nil {
		return err
	}
	defer etcd.Close()
	klog.Infof("etcd: ready in %s, fsync %t", o.dataDir, o.fsync)
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	}
}
