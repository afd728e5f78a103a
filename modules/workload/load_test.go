package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestLoadCountsFailuresAtServerEnd(t *testing.T) {
	for _, mode := range []string{newEach, keepAlive} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			file := filepath.Join(t.TempDir(), "load.json")
			l := start(t, "load", "--url", "http://"+address+"/", "--mode", mode, "--workers", "4", "--summary", file)
			s := start(t, "server", "--listen", address, "--answer-time", "5ms")
			until(t, "requests to be counted", func() bool { return read(t, file).OK > 20 })
			before := read(t, file)
			if before.Failed != 0 || before.Done {
				t.Errorf("before the server ends: %+v", before)
			}
			s.signal(syscall.SIGTERM)
			if err := s.ends(); err != nil {
				t.Fatal(err)
			}
			until(t, "failures to be counted", func() bool { return read(t, file).Failed > 5 })
			l.signal(syscall.SIGTERM)
			if err := l.ends(); err != nil {
				t.Fatal(err)
			}
			sum := read(t, file)
			var ok, failed int64
			for _, b := range sum.Buckets {
				ok, failed = ok+b[0], failed+b[1]
			}
			if ok != sum.OK || failed != sum.Failed || !sum.Done || sum.Kinds[refused] == 0 || int64(len(sum.Failures)) != min(failed, maxLogged) {
				t.Errorf("ok %d of %d, failed %d of %d: %+v", ok, sum.OK, failed, sum.Failed, abridge(sum))
			}
			if mode == keepAlive && (sum.OnReused == 0 || sum.Connections-sum.Before-sum.Failed > 8) {
				t.Errorf("%d connections, %d failures on reused ones", sum.Connections, sum.OnReused)
			}
			if mode == newEach && (sum.OnReused != 0 || sum.Connections < sum.OK+sum.Failed) {
				t.Errorf("%d connections for %d requests", sum.Connections, sum.OK+sum.Failed)
			}
		})
	}
}

// TestLeavingServerLosesNoRequest: a server that announces its end in time loses
// no request.
func TestLeavingServerLosesNoRequest(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	file := filepath.Join(t.TempDir(), "load.json")
	old := start(t, "server", "--listen", address, "--answer-time", "5ms")
	old.isReady()
	l := start(t, "load", "--url", "http://"+address+"/", "--mode", keepAlive, "--workers", "4", "--pause", "20ms", "--summary", file)
	until(t, "requests to be counted", func() bool { return read(t, file).OK > 20 })
	if n := read(t, file).Connections; n > 4+read(t, file).Before {
		t.Errorf("%d connections before the server leaves", n)
	}
	hook := start(t, "prestop", "--sleep", "300ms", "--leave", "http://"+address+"/leave")
	if err := hook.ends(); err != nil {
		t.Fatal(err)
	}
	until(t, "every answer to be the last on its connection", func() bool { return read(t, file).Connections > 20 })
	l.signal(syscall.SIGTERM)
	if err := l.ends(); err != nil {
		t.Fatal(err)
	}
	if s := read(t, file); s.Failed != 0 {
		t.Errorf("%+v", abridge(s))
	}
	wrong := start(t, "prestop", "--leave", "http://"+address+"/nothing")
	if err := wrong.ends(); err == nil {
		t.Error("a failed call of /leave must be an error")
	}
}

func read(t *testing.T, file string) summary {
	t.Helper()
	var s summary
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return s
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDownloadIsCompleteOrFails(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	file := filepath.Join(t.TempDir(), "load.json")
	s := start(t, "server", "--listen", address)
	s.isReady()
	l := start(t, "load", "--url", "http://"+address+"/download?seconds=1", "--mode", download, "--workers", "1", "--summary", file)
	until(t, "a whole download", func() bool { return read(t, file).OK >= 1 })
	s.signal(syscall.SIGTERM)
	until(t, "a failed one", func() bool { return read(t, file).Failed >= 1 })
	l.signal(syscall.SIGTERM)
	if err := l.ends(); err != nil {
		t.Fatal(err)
	}
	got := read(t, file)
	if first := got.Failures[0]; first.Kind != cutShort && first.Kind != reset {
		t.Errorf("the first failure is %+v", first)
	}
	if got.Slowest < 900 {
		t.Errorf("a download of a second took %d ms", got.Slowest)
	}
}

func TestCountingStartsAtFirstSuccess(t *testing.T) {
	zero := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	counter := newCounter()
	for _, r := range []request{
		{at(0), at(10), false, syscall.ECONNREFUSED},
		{at(20), at(50), false, nil},                      // counting begins at 50
		{at(40), at(60), false, syscall.ECONNREFUSED},     // began before that
		{at(60), at(80), false, nil},                      // bucket 0
		{at(100), at(149), false, syscall.ECONNRESET},     // bucket 0
		{at(100), at(150), true, io.ErrUnexpectedEOF},     // bucket 1
		{at(200), at(360), false, os.ErrDeadlineExceeded}, // bucket 3
	} {
		counter.count(r)
	}
	s := counter.s
	if s.Before != 2 || s.OK != 1 || s.Failed != 3 || s.OnReused != 1 || !s.Began.Equal(at(50)) || !s.Ended.Equal(at(360)) {
		t.Errorf("%+v", s)
	}
	if want := [][2]int64{{1, 1}, {0, 1}, {0, 0}, {0, 1}}; !slices.Equal(s.Buckets, want) {
		t.Errorf("buckets %v, want %v", s.Buckets, want)
	}
	if s.Kinds[reset] != 1 || s.Kinds[cutShort] != 1 || s.Kinds[timedOut] != 1 {
		t.Errorf("kinds %v", s.Kinds)
	}
}
