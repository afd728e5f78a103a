package groupcache_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
)

// world is an emulated region and a cluster in a synctest bubble.
type world struct {
	*testing.T
	server   *emulator.Server
	kube     client.Client
	watch    *groupcache.Watcher
	registry *prometheus.Registry

	mu    sync.Mutex
	named []string
	news  []string
	lines []string
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, server: server, kube: fake.NewClientBuilder().Build(), registry: prometheus.NewRegistry()}
		w.watch, err = groupcache.New(groupcache.Options{
			API:    groupcache.NewAPI(emulatortest.Config(server)),
			Reader: w.kube, Quota: ratelimit.New(0, 0), Registerer: w.registry,
			Names: func(context.Context) ([]string, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return slices.Clone(w.named), nil
			},
		})
		w.must(err)
		w.watch.Subscribe(func(group string, ids []string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.news = append(w.news, fmt.Sprintf("%s %d", group, len(ids)))
		})
		_, err = server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{
			ImageID: "ami-0abc", InstanceType: "m5.large", UserData: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")),
		}, nil)
		w.must(err)
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { server.Work(ctx) })
		synctest.Wait() // from now on the region gets events of its instances
		test(w)
		stop()
		running.Wait()
	})
}

// runs starts the watcher.
func (w *world) runs() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.watch.Start(log.IntoContext(ctx, w.logger())) }()
	synctest.Wait()
	return func() { cancel(); w.must(<-ended) }
}

func (w *world) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, args)
	}, funcr.Options{})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// group creates a group with running instances.
func (w *world) group(g emu.Group) {
	w.Helper()
	g.Template, g.Max = ec2.TemplateRef{Name: "workers", Version: "$Latest"}, max(g.Max, 100)
	w.must(w.server.States.AutoScaling.CreateGroup(g))
}

// join creates nodes for all running instances.
func (w *world) join() {
	w.Helper()
	for _, m := range w.server.States.AutoScaling.Members() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.InstanceID, CreationTimestamp: metav1.Now()}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + m.InstanceID}}
		w.must(client.IgnoreAlreadyExists(w.kube.Create(w.Context(), node)))
	}
}

// states counts the states that the watcher knows of a group.
func (w *world) states(group string) string {
	g, _ := w.watch.Group(group)
	counts := map[string]int{}
	for _, m := range g.Members {
		counts[m.State]++
	}
	var out []string
	for state, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *world) calls() map[string]int { return w.server.Gate.AllCalls("autoscaling") }

func (w *world) linesWith(parts ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

// pass advances the time and waits until all goroutines are idle.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's
	synctest.Wait()
}
