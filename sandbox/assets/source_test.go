package assets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFindSource(t *testing.T) {
	root := newSource(t)
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("named", func(t *testing.T) {
		t.Setenv(SourceEnv, root)
		if got, err := findSource(); err != nil || got != root {
			t.Errorf("got %s, %v; want %s", got, err, root)
		}
	})
	t.Run("named wrongly", func(t *testing.T) {
		t.Setenv(SourceEnv, filepath.Join(root, "modules", "tiny")) // a go.mod, but not ours
		if _, err := findSource(); err == nil || !strings.Contains(err.Error(), "set it to a clone") {
			t.Errorf("got error %v, want the next step", err)
		}
	})
	t.Run("above the working directory", func(t *testing.T) {
		t.Setenv(SourceEnv, "")
		t.Chdir(filepath.Join(root, "modules", "tiny"))
		if got, err := findSource(); err != nil || got != resolved && got != root {
			t.Errorf("got %s, %v; want %s", got, err, root)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		t.Setenv(SourceEnv, "")
		t.Chdir(t.TempDir())
		if _, err := findSource(); err == nil || !strings.Contains(err.Error(), "run this within a clone, or set LIFEBOAT_SOURCE") {
			t.Errorf("got error %v, want the next step", err)
		}
	})
}

// The modules that Ensure builds must exist and be pinned. A cached build must not hide an error.
func TestRealModulesAreFound(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	b, err := newBuilder(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(os.Getenv(CacheEnv), "assets"); b.cache != want {
		t.Errorf("the cache is %s, want %s", b.cache, want)
	}
	for _, m := range []module{kubernetesModule(), kwokModule(), karpenterModule(), olderKarpenterModule(), csiModule()} {
		e, err := b.locate(m)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if !strings.HasPrefix(filepath.Base(e.home), m.name+"-"+e.version+"-") {
			t.Errorf("%s would be kept in %s", m.name, e.home)
		}
		if !strings.Contains(e.flags, strings.TrimPrefix(e.version, "v")) {
			t.Errorf("%s is linked with %q, which does not stamp %s", m.name, e.flags, e.version)
		}
	}
}

// Each version of `make matrix` must exist, at a place of its own in the cache.
func TestMinorVersionsAreFound(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	b, err := newBuilder(nil)
	if err != nil {
		t.Fatal(err)
	}
	homes := map[string]bool{}
	for _, minor := range []string{"1.35", "1.36", "1.37"} {
		t.Setenv(KubernetesEnv, minor)
		e, err := b.locate(kubernetesModule())
		if err != nil || !strings.HasPrefix(e.version, "v"+minor+".") || !strings.Contains(strings.Join(e.buildArgs("out"), " "), "gitVersion="+e.version) {
			t.Errorf("Kubernetes %s is %s (%v), built with %q", minor, e.version, err, e.buildArgs("out"))
		}
		if uses := slices.Contains(e.buildArgs("out"), "-modfile=v"+minor+".mod"); uses != (minor != "1.36") {
			t.Errorf("Kubernetes %s is built with %q", minor, e.buildArgs("out"))
		}
		homes[e.home] = true
	}
	if len(homes) != 3 {
		t.Errorf("the places in the cache are %v", homes)
	}
	t.Setenv(KubernetesEnv, "1.99")
	if _, err := b.locate(kubernetesModule()); err == nil || !strings.Contains(err.Error(), "no version 1.99") {
		t.Errorf("an unknown version gave %v", err)
	}
	if e, err := b.locate(olderKarpenterModule()); err != nil || !strings.HasPrefix(e.version, "v"+olderKarpenterMinor+".") {
		t.Errorf("the older Karpenter is %s (%v)", e.version, err)
	}
}

func TestKubernetesLDFlags(t *testing.T) {
	got := kubernetesLDFlags("v1.36.3")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=36",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestPinnedVersion(t *testing.T) {
	for name, mod := range map[string]string{
		"in a block":   "require (\n\texample.com/a/b v9.9.9\n\texample.com/a v1.0.0\n)\n",
		"on its own":   "require example.com/a v1.0.0\n",
		"with comment": "require (\n\texample.com/a v1.0.0 // indirect\n)\n",
	} {
		if got, err := pinnedVersion([]byte(mod), "example.com/a"); err != nil || got != "v1.0.0" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := pinnedVersion([]byte("module example.com/a\n"), "example.com/a"); err == nil {
		t.Error("a go.mod that does not require it gave no error")
	}
}

func TestProgressReadsBuildLog(t *testing.T) {
	log := buildLog{path: filepath.Join(t.TempDir(), "build.log")}
	for _, tc := range []struct{ log, want string }{
		{"", "getting ready"},
		{"go: downloading k8s.io/api v0.36.3\ngo: downloading k8s.io/kms v0.36.3\n", "2 modules downloaded"},
		{"go: downloading k8s.io/api v0.36.3\nunicode\nk8s.io/api/core/v1\ninternal/", "3 packages"},
		{"unicode\n# example.com/x\n./main.go:3: undefined: y\n", "1 packages"},
	} {
		write(t, log.path, tc.log)
		if got := log.summary(); got != tc.want {
			t.Errorf("of %q the summary is %q, want %q", tc.log, got, tc.want)
		}
	}
}

func TestTerminalLineIsOverwritten(t *testing.T) {
	out := &output{}
	p := &progress{w: out, terminal: true, every: time.Second}
	p.update("one")
	p.update("two")
	p.println("three")
	if want := "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kthree\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
}
