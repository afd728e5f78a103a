package runner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
)

// story is the timeline of a record with its notification servers.
type story struct {
	*world
	notifications []v1beta1.Notification
	timeline      []v1beta1.TimelineEntry
	notified      []v1beta1.NotificationStatus
}

func newStory(t *testing.T, notifications ...v1beta1.Notification) *story {
	return &story{world: newWorld(t, none), notifications: notifications}
}

func notification(name, url string, on ...string) v1beta1.Notification {
	return v1beta1.Notification{Name: name, Reasons: on, Webhook: v1beta1.Webhook{URL: url}}
}

// after advances the clock.
func (s *story) after(d time.Duration) *story {
	s.world.after(d)
	return s
}

// happens adds timeline entries with the current time.
func (s *story) happens(reasons ...string) {
	for _, reason := range reasons {
		s.timeline = append(s.timeline, v1beta1.TimelineEntry{Time: at(s.now), Reason: reason, Message: "it is " + reason})
	}
}

func (s *story) tryTell() runner.NotifyResult {
	s.t.Helper()
	told, err := s.runner.Notify(s.t.Context(), runner.NotifyRequest{
		Notifications: s.notifications, Timeline: s.timeline, Notified: s.notified, Subject: s.subject, Now: s.now,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return told
}

// tell runs a pass and stores its result.
func (s *story) tell() runner.NotifyResult {
	s.t.Helper()
	told := s.tryTell()
	s.notified = told.Notified
	for _, h := range told.Happened {
		s.world.happened = append(s.world.happened, h.Reason+": "+h.Message)
		s.timeline = append(s.timeline, v1beta1.TimelineEntry{Time: at(s.now), Reason: h.Reason, Message: h.Message})
	}
	if told.Idle != told.Wake.IsZero() {
		s.t.Errorf("contradictory: %+v", told)
	}
	return told
}

// told are the reason and the message of each request.
func toldBy(t *testing.T, s *server) []string {
	t.Helper()
	var all []string
	for _, r := range s.requests() {
		var body struct{ Reason, Message string }
		if err := json.Unmarshal([]byte(r.body), &body); err != nil {
			t.Fatal(err)
		}
		all = append(all, body.Reason+": "+strings.ReplaceAll(body.Message, "\n", " / "))
	}
	return all
}

func TestDueNotificationsAreSentAtOnce(t *testing.T) {
	chat := serve(t, status(200, "ok"))
	s := newStory(t, notification("chat", chat.URL))
	if told := s.tell(); !told.Idle || len(s.notified) != 0 {
		t.Errorf("there is nothing to tell: %+v", told)
	}
	s.happens("NoticeReceived", "Decided", "Cordoned", "Evicted")
	if told := s.tell(); told.Idle || len(told.Notified) != 0 {
		t.Errorf("%+v", told)
	}
	s.awaitWake()
	s.after(time.Second).happens("PodTerminated")
	if told := s.tell(); !told.Idle {
		t.Errorf("%+v", told)
	}
	if diff := cmp.Diff([]v1beta1.NotificationStatus{{Name: "chat", LastDeliveredTime: at(begin)}}, s.notified); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.after(time.Second).happens("Drained", "PodLost", "Completed")
	s.tell()
	s.awaitWake()
	if told := s.tell(); !told.Idle || !s.notified[0].LastDeliveredTime.Time.Equal(s.now) {
		t.Errorf("%+v", told)
	}
	if diff := cmp.Diff([]string{
		"Cordoned: it is NoticeReceived / it is Cordoned",
		"PodLost: it is Drained / it is PodLost / it is Completed",
	}, toldBy(t, chat)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNotificationSelection(t *testing.T) {
	all, few := serve(t, status(200, "")), serve(t, status(200, ""))
	s := newStory(t, notification("all", all.URL, "*"), notification("few", few.URL, "Evicted", "Surged"))
	s.happens("NoticeReceived", "Evicted", "NotificationFailed", "PodTerminated")
	s.tell()
	s.awaitWake()
	s.awaitWake()
	s.tell()
	if diff := cmp.Diff([]string{"PodTerminated: it is NoticeReceived / it is Evicted / it is PodTerminated"}, toldBy(t, all)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Evicted: it is Evicted"}, toldBy(t, few)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNotificationWithEarlierTimeIsSent(t *testing.T) {
	chat := serve(t, status(200, ""))
	s := newStory(t, notification("chat", chat.URL))
	s.happens("Cordoned")
	s.tell()
	s.awaitWake()
	s.tell()
	s.timeline = append(s.timeline, v1beta1.TimelineEntry{Time: at(begin.Add(-time.Second)), Reason: "NoticeReceived", Message: "late"})
	s.after(time.Second).happens("Drained")
	s.tell()
	s.awaitWake()
	if told := s.tell(); !told.Idle {
		t.Errorf("%+v", told)
	}
	if diff := cmp.Diff([]string{"Cordoned: it is Cordoned", "Drained: late / it is Drained"}, toldBy(t, chat)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTrimmedTimeline(t *testing.T) {
	chat := serve(t, status(200, ""))
	s := newStory(t, notification("chat", chat.URL))
	s.happens("NoticeReceived")
	s.notified = []v1beta1.NotificationStatus{{Name: "chat", LastDeliveredTime: at(begin.Add(time.Second))}}
	s.after(2 * time.Second).happens("Drained")
	s.tell()
	s.awaitWake()
	s.tell()
	if diff := cmp.Diff([]string{"Drained: it is Drained"}, toldBy(t, chat)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEarlierNotificationsAreNotRepeated(t *testing.T) {
	chat := serve(t, status(200, ""))
	s := newStory(t, notification("chat", chat.URL))
	s.happens("NoticeReceived", "Completed")
	s.subject.Since = s.now
	s.after(time.Hour).happens("NoticeReceived")
	s.tell()
	s.awaitWake()
	s.tell()
	if diff := cmp.Diff([]string{"NoticeReceived: it is NoticeReceived"}, toldBy(t, chat)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNotificationIsTriedThreeTimes(t *testing.T) {
	chat := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no_service", http.StatusNotFound) })
	s := newStory(t, notification("chat", chat.URL, "*"))
	s.happens("NoticeReceived")
	for try := range int32(2) {
		s.tell()
		s.awaitWake()
		told := s.tell()
		want := v1beta1.NotificationStatus{Name: "chat", LastDeliveredTime: at(time.Unix(0, 0).UTC()), Tries: try + 1, Message: hostOf(chat) + " answered 404 Not Found"}
		if diff := cmp.Diff([]v1beta1.NotificationStatus{want}, s.notified); diff != "" || !told.Wake.Equal(s.now.Add(2*time.Second<<try)) {
			t.Errorf("wakes at %s (-want +got)\n%s", told.Wake, diff)
		}
		if s.after(time.Second).tell(); len(chat.requests()) != int(try)+1 {
			t.Error("it was tried again too soon")
		}
		s.after(told.Wake.Sub(s.now))
	}
	s.tell()
	s.awaitWake()
	told := s.tell()
	if !told.Idle || s.notified[0].Tries != 0 || !s.notified[0].LastDeliveredTime.Time.Equal(begin) || s.notified[0].Message == "" {
		t.Errorf("%+v", told)
	}
	if told := s.tell(); !told.Idle || len(chat.requests()) != 3 {
		t.Errorf("that it was not delivered was told: %+v", told)
	}
	if diff := cmp.Diff([]string{"NotificationFailed: notification chat was not delivered: " + hostOf(chat) + " answered 404 Not Found"}, s.world.happened); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	keys := map[string]bool{}
	for _, r := range chat.requests() {
		keys[r.header.Get("Idempotency-Key")] = true
	}
	if len(keys) != 1 {
		t.Errorf("the same was told with %d keys", len(keys))
	}
}

func TestRetryAfterIsRespected(t *testing.T) {
	chat := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s := newStory(t, notification("chat", chat.URL))
	s.happens("NoticeReceived")
	s.tell()
	s.awaitWake()
	if told := s.tell(); !told.Wake.Equal(s.now.Add(30 * time.Second)) {
		t.Errorf("%+v", told)
	}
}

func TestNotificationWithInvalidBodyIsAbandoned(t *testing.T) {
	n := notification("chat", "http://127.0.0.1:1")
	n.Webhook.Body = "{{.Message.Text}}"
	s := newStory(t, n)
	s.happens("NoticeReceived")
	s.tell()
	if told := s.tell(); !told.Idle || len(s.world.happened) != 1 || !strings.Contains(s.world.happened[0], "rendering the body") {
		t.Errorf("%+v %v", told, s.world.happened)
	}
}

func TestLongNotificationIsTruncated(t *testing.T) {
	chat := serve(t, status(200, ""))
	s := newStory(t, notification("chat", chat.URL, "*"))
	for i := range 50 {
		s.timeline = append(s.timeline, v1beta1.TimelineEntry{Time: at(begin), Reason: "Evicted", Message: fmt.Sprint(i, strings.Repeat("\"", 500))})
	}
	s.tell()
	s.awaitWake()
	if told := s.tell(); !told.Idle {
		t.Errorf("%+v", told)
	}
	got := toldBy(t, chat)[0]
	if !strings.HasPrefix(got, "Evicted: 34 earlier; see the Interruption's timeline / 34\"") || !strings.Contains(got, "/ 49\"") {
		t.Errorf("%s", got)
	}
}

func TestNotifiedListIsBounded(t *testing.T) {
	chat := serve(t, status(200, ""))
	s := newStory(t, notification("chat", chat.URL))
	for i := range 8 {
		s.notified = append(s.notified, v1beta1.NotificationStatus{Name: fmt.Sprint("gone-", i), LastDeliveredTime: at(begin)})
	}
	s.happens("Drained")
	s.tell()
	s.awaitWake()
	s.tell()
	if len(s.notified) != 8 || s.notified[0].Name != "gone-1" || s.notified[7].Name != "chat" {
		t.Errorf("%+v", s.notified)
	}
}

// Despite lost writes, each entry is sent in order at least once, or given up
// after three tries. In the end no request is in progress.
func TestNotificationsSurviveCrashes(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		var asked atomic.Uint64
		chat := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if (asked.Add(1)+seed)%3 == 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		s := newStory(t, notification("chat", chat.URL, "Drained"))
		want := 0
		idle := false
		for step := 0; step < 400 && (step < 50 || !idle); step++ {
			switch random.IntN(4) {
			case 0:
				s.restart()
			case 1:
				s.tryTell() // and what it said is not written
			case 2:
				if want < 12 {
					want++
					s.timeline = append(s.timeline, v1beta1.TimelineEntry{Time: at(s.now), Reason: "Drained", Message: fmt.Sprint("entry ", want)})
				}
			}
			s.after(3 * time.Second)
			told := s.tell()
			idle = told.Idle
			if underWay := told.Wake.Equal(s.now.Add(15 * time.Second)); underWay && random.IntN(2) == 0 {
				await(t, func() bool { return !slices.Equal(s.tryTell().Notified, s.notified) })
			}
		}
		if !idle {
			t.Fatalf("seed %d: still not done: %+v", seed, s.notified)
		}
		heard := strings.Join(toldBy(t, chat), " / ")
		for i := range want {
			if !strings.Contains(heard+" ", fmt.Sprintf("entry %d ", i+1)) {
				t.Errorf("seed %d: entry %d was never told", seed, i+1)
			}
		}
		if last := s.notified[0].LastDeliveredTime; !slices.ContainsFunc(s.timeline, func(e v1beta1.TimelineEntry) bool { return e.Time.Equal(&last) }) {
			t.Errorf("seed %d: through %s", seed, last)
		}
		s.stop()
	}
}
