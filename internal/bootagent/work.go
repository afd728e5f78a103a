package bootagent

import (
	"context"
	"errors"
	"strings"
	"time"
)

// outcome is the result of a try of a stage.
type outcome struct {
	key string
	err error
	cut bool // it was cancelled
}

func isImage(key string) bool { return strings.HasPrefix(key, imageKey) }

// startJob starts a try of a stage in the background; it reports its end on a channel.
func (a *Agent) startJob(ctx context.Context, key string) {
	s := a.stage(key)
	if s == nil || a.jobs[key] != nil {
		return
	}
	s.Running = true
	ctx, cancel := context.WithTimeout(ctx, stageTime)
	a.jobs[key] = cancel
	command := a.command(key)
	a.running.Go(func() {
		_, err := a.o.Run(ctx, command)
		a.news <- outcome{key, err, errors.Is(ctx.Err(), context.Canceled)}
	})
}

// command is the command of a stage.
func (a *Agent) command(key string) []string {
	image, ok := strings.CutPrefix(key, imageKey)
	if !ok {
		return []string{"/bin/sh", "-c", strings.TrimPrefix(key, commandKey)}
	}
	out := make([]string, len(a.o.Pull))
	for i, word := range a.o.Pull {
		out[i] = strings.ReplaceAll(word, refWord, image)
	}
	return out
}

// words splits the pull command.
func words(line string) []string { return strings.Fields(line) }

// recordStage records the result of a try of a stage.
func (a *Agent) recordStage(ctx context.Context, o outcome) {
	if cancel := a.jobs[o.key]; cancel != nil {
		cancel()
		delete(a.jobs, o.key)
	}
	s := a.stage(o.key)
	if s == nil {
		return
	}
	s.Running = false
	now := a.o.Clock.Wall()
	switch {
	case o.err == nil:
		s.Done, s.Trouble = true, ""
		if a.facts.Journal.Stages == nil {
			a.facts.Journal.Stages = map[string]time.Time{}
		}
		a.facts.Journal.Stages[o.key] = now
		a.facts.Progress = now
		a.save(ctx)
	case o.cut:
	default:
		s.Tries++
		s.Trouble = o.err.Error()
		s.Again = now.Add(a.backoff(s.Tries + 1))
	}
}

func (a *Agent) stage(key string) *StageFact {
	for i := range a.facts.Stages {
		if a.facts.Stages[i].Key == key {
			return &a.facts.Stages[i]
		}
	}
	return nil
}

// cancelJobs cancels stages. Each reports its end as usual.
func (a *Agent) cancelJobs(which func(key string) bool) {
	for key, cancel := range a.jobs {
		if which(key) {
			cancel()
		}
	}
}
