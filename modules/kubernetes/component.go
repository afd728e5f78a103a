package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// stopTimeout bounds how long one component may take to stop.
const stopTimeout = 15 * time.Second

// component is a running part of the control plane.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when the component has returned
	err    error         // its result; read after done
}

func start(name string, run func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	return c
}

// ended returns the error of a component that returned without a call of stop.
func (c *component) ended() error {
	err := c.err
	if err == nil {
		err = errors.New("no reason given")
	}
	return fmt.Errorf("%s ended: %w", c.name, err)
}

// stop asks the component to return and waits for it.
func (c *component) stop() {
	c.cancel()
	select {
	case <-c.done:
		klog.Infof("control plane: %s stopped", c.name)
	case <-time.After(stopTimeout):
		klog.Warningf("control plane: %s did not stop within %s", c.name, stopTimeout)
	}
}
