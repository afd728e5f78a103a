package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// startKwok starts kwok, and restarts it whenever it ends.
func (s *Sandbox) startKwok(ctx context.Context) error {
	dir := s.path("kwok")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making kwok's directory: %w", err)
	}
	kubeconfig, err := s.linkedKubeconfig(LinkKubeletsAPI, s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	options := kwok.Options{
		Binary: s.programs.Kwok, Kubeconfig: kubeconfig, Dir: dir, KubeletVersion: s.programs.KubernetesVersion,
	}
	part := Part{Name: "kwok", Version: s.programs.KwokVersion, Log: filepath.Join(dir, "kwok.log")}
	s.kwok = &supervisor{
		name: part.Name, log: s.log,
		launch:  func(ctx context.Context) (*process.Process, error) { return s.launchKwok(ctx, options) },
		started: func(pid int) { s.partStarted(part, pid) },
	}
	return s.kwok.start(ctx)
}

// launchKwok starts kwok, and makes it process the pods of nodes that an earlier kwok simulated.
func (s *Sandbox) launchKwok(ctx context.Context, options kwok.Options) (*process.Process, error) {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	before, err := kwok.Holders(ctx, client)
	if err != nil {
		return nil, err
	}
	p, err := kwok.Start(ctx, options)
	if err != nil || len(before) == 0 {
		return p, err
	}
	rousing, ended := context.WithCancel(context.Background())
	go func() {
		<-p.Done()
		ended()
	}()
	go func() {
		if err := kwok.Resync(rousing, client, before); err != nil {
			s.log.Info("kwok ended before it managed all nodes", "err", err)
		}
	}()
	return p, nil
}
