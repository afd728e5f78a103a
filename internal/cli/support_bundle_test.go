package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// archive returns the files of an archive.
func archive(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// supportObjects have a credential in each place where one can be.
func supportObjects() []client.Object {
	p := policyOf(v1beta1.ActionDrain, "*")
	p.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"url":"https://hooks.slack.example/T0/TOKEN"}`}
	p.Spec.Notifications = []v1beta1.Notification{{Name: "slack", Webhook: v1beta1.Webhook{
		URL: "https://hooks.slack.example/T0/TOKEN", Headers: map[string]string{"Authorization": "Bearer TOKEN"}, Body: `{"routing_key":"TOKEN"}`,
	}}}
	i := newInstallation()
	i.controller.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://user:TOKEN@proxy"}}
	i.pods = []client.Object{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: "controller-1", Labels: map[string]string{nameLabel: "lifeboat", componentLabel: "controller"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "controller"}}},
	}}
	i.agents.Namespace = "agents"
	i.pods = append(i.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "agent-1"}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lifeboatNamespace, Name: "hook"}, StringData: map[string]string{"url": "TOKEN"}}
	return append(append(mixedNode(), p, secret, interruption(requestNotice())), i.objects()...)
}

func TestSupportBundleHasNoCredentials(t *testing.T) {
	user := withUser("carol")
	user.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		switch l.(type) {
		case *corev1.SecretList, *corev1.ConfigMapList:
			t.Errorf("it lists %T", l)
		}
		return c.List(ctx, l, opts...)
	}
	user.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		switch o.(type) {
		case *corev1.Secret, *corev1.ConfigMap:
			t.Errorf("it reads %T %s", o, key)
		}
		return c.Get(ctx, key, o, opts...)
	}
	c := cluster{WithWatch: fakeCluster(t, user, supportObjects()...), name: "prod"}
	c.raw = func(_ context.Context, path string) (io.ReadCloser, error) {
		if strings.HasSuffix(path, "/proxy/metrics") {
			return nil, errors.New("no route to the pod")
		}
		return io.NopCloser(strings.NewReader(`posting to https://hooks.slack.example/T0/TOKEN failed` + "\n")), nil
	}
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	h := &harness{t: t, setup: func(s *session) { s.connect = func(context.Context) (cluster, error) { return c, nil } }}
	r := h.run(t.Context(), "support-bundle", "--file", path, "--no-doctor")
	if r.code != ExitOK {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	files := archive(t, path)
	for name, want := range map[string]string{
		"objects/agents-pods.json": "agent-1", "objects/agents-daemonsets.json": "lifeboat-agent",
		"objects/interruptions.json": instanceA, "objects/policies.json": "https://hooks.slack.example/REMOVED", "objects/deployments.json": "HTTPS_PROXY",
		"logs/controller-1.log": "posting to REMOVED failed", "status.json": `"underWay"`, "version.json": "goVersion", "errors.txt": "no route to the pod",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
	for name, text := range files {
		if strings.Contains(text, "TOKEN") {
			t.Errorf("%s has a credential:\n%s", name, text)
		}
		if !strings.Contains(r.out, name) {
			t.Errorf("the list of contents lacks %s", name)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has the mode %v (%v)", info.Mode(), err)
	}
	if again := h.run(t.Context(), "support-bundle", "--file", path, "--no-doctor"); again.code != ExitFailed || !strings.Contains(again.err, "choose another name with --file") {
		t.Errorf("it replaces an archive: exit code %d\n%s", again.code, again.err)
	}
}
