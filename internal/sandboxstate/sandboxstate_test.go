package sandboxstate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sb")
	if yes, err := Held(dir); yes || err != nil {
		t.Errorf("held before it was there: %v, %v", yes, err)
	}
	l, err := TakeLock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "leftover"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), dir); !errors.Is(err, ErrRunning) {
		t.Errorf("taken twice: %v", err)
	}
	if yes, err := Held(dir); !yes || err != nil {
		t.Errorf("held: %v, %v", yes, err)
	}
	if err := l.Clear(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left after clearing, %v: want the lock", len(entries), err)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestDefaultDirIsInTheStateHome(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/somewhere")
	if dir, err := DefaultDir("x"); dir != "/somewhere/lifeboat/sandbox/x" || err != nil {
		t.Errorf("DefaultDir() = %s, %v", dir, err)
	}
}

func TestExportsAreQuoted(t *testing.T) {
	got := State{Name: "second", Kubeconfig: "/it's/here", AWSEndpoint: "http://127.0.0.1:1", Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "b"}.Exports()
	want := `export KUBECONFIG='/it'\''s/here'
export AWS_ENDPOINT_URL='http://127.0.0.1:1'
export AWS_REGION='us-east-1'
export AWS_DEFAULT_REGION='us-east-1'
export AWS_ACCESS_KEY_ID='a'
export AWS_SECRET_ACCESS_KEY='b'
export LIFEBOAT_SANDBOX='second'
`
	if got != want {
		t.Errorf("exports:\n%s\nwant:\n%s", got, want)
	}
}
