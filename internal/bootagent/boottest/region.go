// Package boottest runs the agents of many machines in one process. The machines are instances
// of an emulated region, each with a disk, a kubelet and a node. They can be suspended,
// disconnected, and killed at any line. It opens no port and does not really sleep, so it works
// in a bubble of testing/synctest.
package boottest

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// Region is an emulated region in memory.
type Region struct {
	*emulator.Server
	stop func()
}

// Start starts a region. Stop it before the test ends.
func Start(o emulator.Options) (*Region, error) {
	server, err := emulator.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Work(ctx)
	}()
	return &Region{server, func() { cancel(); <-done }}, nil
}

// Stop stops the region and everything in it.
func (r *Region) Stop() { r.stop() }

// Config is an SDK configuration whose calls go to the region.
func (r *Region) Config() aws.Config { return emulatortest.Config(r.Server) }

// Memory keeps files in memory.
type Memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Read returns a file; a missing one is empty.
func (m *Memory) Read(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name], nil
}

// Write writes a file.
func (m *Memory) Write(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.files[name] = data
	return nil
}

// Remove removes a file.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}
