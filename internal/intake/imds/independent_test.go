package imds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// contents are the paths that can hold a notice, with content that is one.
func contents() map[string]string {
	return map[string]string{
		pathSpot:        fmt.Sprintf(`{"action":"terminate","time":%q}`, time.Now().Add(2*time.Minute).UTC().Format(time.RFC3339)),
		pathRebalance:   `{"noticeTime":"2066-05-21T09:00:43Z"}`,
		pathAutoScaling: "Terminated",
		pathScheduled:   twoEvents,
	}
}

func failing(path string, reason metadata.Reason) error {
	return &metadata.ReadError{Reason: reason, Err: errors.New("reading instance metadata " + path + ": StatusCode: 500")}
}

// Each path of the metadata fails in turn, in each way: the notices of the
// other paths are recorded within a few seconds.
func TestFailingPathDoesNotHideOthers(t *testing.T) {
	for _, reason := range []metadata.Reason{metadata.ServerError, metadata.Throttled, metadata.Unreachable, metadata.Token} {
		for failed := range contents() {
			for other := range contents() {
				if other == failed {
					continue
				}
				t.Run(fmt.Sprintf("%s fails (%s), %s holds a notice", failed, reason, other), func(t *testing.T) {
					inBubble(t, func(p *page, w *polltest.World, s *Source) {
						p.failPath(failed, failing(failed, reason))
						time.Sleep(5 * time.Minute) // long enough for the longest backoff
						p.set(other, contents()[other])
						time.Sleep(15 * time.Second)
						if len(w.Written(instance)) == 0 {
							t.Error("nothing is on record")
						}
						if err := s.Ready(); err == nil || !strings.Contains(err.Error(), failed) {
							t.Errorf("ready: %v, want the failing path named", err)
						}
						p.failPath(failed, nil)
						time.Sleep(15 * time.Second)
						if err := s.Ready(); err != nil {
							t.Errorf("after the failure: %v", err)
						}
					})
				})
			}
		}
	}
}

func TestFailingPathDoesNotDelaySpotNotice(t *testing.T) {
	inBubble(t, func(p *page, w *polltest.World, _ *Source) {
		p.failPath(pathAutoScaling, failing(pathAutoScaling, metadata.ServerError))
		time.Sleep(5 * time.Minute)
		p.set(pathSpot, contents()[pathSpot])
		time.Sleep(3 * time.Second)
		if got := w.Written(instance); len(got) != 1 || got[0].Kind != notice.KindSpotInterruption {
			t.Errorf("on record after 3 s: %+v", got)
		}
	})
}

// The agent is not ready while metadata holds what it cannot decode: it may be
// a notice.
func TestContentThatCannotBeDecodedIsNotReady(t *testing.T) {
	for path, text := range map[string]string{pathSpot: `{"action":"term`, pathRebalance: `<html>`, pathScheduled: `[{"Code":"instance-stop","NotBefore":"soon"}]`} {
		inBubble(t, func(p *page, w *polltest.World, s *Source) {
			p.set(path, text)
			p.set(pathAutoScaling, "Terminated")
			time.Sleep(15 * time.Second)
			if len(w.Written(instance)) != 1 {
				t.Errorf("%s: on record: %v", path, w.Written(instance))
			}
			err := s.Ready()
			if err == nil || !strings.Contains(err.Error(), "reason=unreadable") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s holds %q: ready: %v", path, text, err)
			}
			p.remove(path)
			time.Sleep(15 * time.Second)
			if err := s.Ready(); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

func TestReadyNamesReasonAndAdvice(t *testing.T) {
	inBubble(t, func(p *page, _ *polltest.World, s *Source) {
		p.fail(&metadata.ReadError{Reason: metadata.HopLimit, Err: errors.New("no answer")})
		time.Sleep(time.Minute)
		err := s.Ready()
		for _, want := range []string{"reason=hopLimit", "--http-put-response-hop-limit 2", "--instance-id " + instance} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ready: %v, want %s", err, want)
			}
		}
	})
}
