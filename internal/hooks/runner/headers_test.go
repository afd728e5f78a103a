package runner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// A policy's author may name any host, so the Secret says which hosts get its entries.
func TestHeaderFromSecretGoesOnlyToItsHosts(t *testing.T) {
	const token = "Bearer s3cr3t-t0ken"
	for _, c := range []struct {
		name, hosts, value string
		urlToo             bool
		want               string // "" if the header is sent
	}{
		{name: "a listed host", hosts: "events.example.com, 127.0.0.1", value: token + "\n"},
		{name: "the URL is in the same Secret", value: token, urlToo: true},
		{name: "no host is listed", value: token,
			want: "the header Authorization in Secret pager (token) may not be sent to HOST: add the host to the Secret's annotation lifeboat.dev/webhook-hosts"},
		{name: "another host is listed", hosts: "127.0.0.10,example.com", value: token,
			want: "the header Authorization in Secret pager (token) may not be sent to HOST: add the host to the Secret's annotation lifeboat.dev/webhook-hosts"},
		{name: "no Secret",
			want: "the header Authorization in Secret pager (token) does not exist: create Secret lifeboat-system/pager with the key token"},
		{name: "two lines", hosts: "127.0.0.1", value: "s3cr3t\r\nX-Evil: 1",
			want: "the header Authorization in Secret pager (token) cannot be sent: the value contains a line break or another control character: remove it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, r.Header.Get("Authorization"), http.StatusBadRequest)
			})
			w := newWorld(t, none, webHook("page", s.URL, func(h *v1beta1.Hook) {
				h.Webhook.HeadersFrom = map[string]v1beta1.SecretKey{"Authorization": {Name: "pager", Key: "token"}}
				if c.urlToo {
					h.Webhook.URL, h.Webhook.URLFrom = "", &v1beta1.SecretKey{Name: "pager", Key: "url"}
				}
			}))
			if c.value != "" {
				secret := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "lifeboat-system", Name: "pager", Annotations: map[string]string{v1beta1.AnnotationWebhookHosts: c.hosts}},
					Data:       map[string][]byte{"token": []byte(c.value), "url": []byte(s.URL)},
				}
				if err := w.live.Create(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
			}
			w.pass()
			w.awaitWake()
			w.pass()
			got := s.requests()
			if c.want == "" && (len(got) != 1 || got[0].header.Get("Authorization") != token) {
				t.Errorf("the header was not sent: %+v", got)
			}
			if want := strings.ReplaceAll(c.want, "HOST", hostOf(s)); c.want != "" && (len(got) != 0 || w.status[0].Message != want) {
				t.Errorf("%d requests\ngot  %s\nwant %s", len(got), w.status[0].Message, want)
			}
			if strings.Contains(fmt.Sprint(w.status, w.happened), "s3cr3t") {
				t.Errorf("a secret came out: %v", w.status)
			}
		})
	}
}

// The body can contain an entry of a Secret, with the same protection as a header.
func TestValueFromSecretGoesOnlyToItsHosts(t *testing.T) {
	for hosts, want := range map[string]string{
		"127.0.0.1":   "",
		"example.com": "the value routingKey in Secret pager (key) may not be sent to HOST: add the host to the Secret's annotation lifeboat.dev/webhook-hosts",
	} {
		t.Run(hosts, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) })
			w := newWorld(t, none, webHook("page", s.URL, func(h *v1beta1.Hook) {
				h.Webhook.Body = `{"routing_key": "{{.Values.routingKey}}"}`
				h.Webhook.ValuesFrom = map[string]v1beta1.SecretKey{"routingKey": {Name: "pager", Key: "key"}}
			}))
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lifeboat-system", Name: "pager", Annotations: map[string]string{v1beta1.AnnotationWebhookHosts: hosts}},
				Data:       map[string][]byte{"key": []byte("s3cr3t\n")},
			}
			if err := w.live.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			w.pass()
			w.awaitWake()
			w.pass()
			got := s.requests()
			if want == "" && (len(got) != 1 || got[0].body != `{"routing_key": "s3cr3t"}`) {
				t.Errorf("got %+v", got)
			}
			if want := strings.ReplaceAll(want, "HOST", hostOf(s)); want != "" && (len(got) != 0 || w.status[0].Message != want) {
				t.Errorf("%d requests\ngot  %s\nwant %s", len(got), w.status[0].Message, want)
			}
			if strings.Contains(fmt.Sprint(w.status, w.happened), "s3cr3t") {
				t.Errorf("a secret came out: %v", w.status)
			}
		})
	}
}
