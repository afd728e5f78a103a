package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrebuiltProgramsNeedNeitherGoNorSource(t *testing.T) {
	dir := t.TempDir()
	built := t.TempDir()
	for _, name := range []string{"kubernetes", "kwok", "karpenter"} {
		write(t, filepath.Join(built, name, name), name)
	}
	exported := Paths{
		Kubernetes: filepath.Join(built, "kubernetes", "kubernetes"), KubernetesVersion: "v1.2.3",
		Kwok: filepath.Join(built, "kwok", "kwok"), KwokVersion: "v0.1.0",
		Karpenter: filepath.Join(built, "karpenter", "karpenter"), KarpenterVersion: "v1.0.0",
	}
	if err := Export(exported, dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "/nonexistent")
	t.Setenv(SourceEnv, "")
	t.Setenv(ProgramsEnv, dir)
	got, err := EnsureKarpenter(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Paths{
		Kubernetes: filepath.Join(dir, "kubernetes-v1.2.3", "kubernetes"), KubernetesVersion: "v1.2.3",
		Kwok: filepath.Join(dir, "kwok-v0.1.0", "kwok"), KwokVersion: "v0.1.0",
		Karpenter: filepath.Join(dir, "karpenter-v1.0.0", "karpenter"), KarpenterVersion: "v1.0.0",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if text, err := os.ReadFile(got.Karpenter); err != nil || string(text) != "karpenter" {
		t.Errorf("the copy has %q (%v)", text, err)
	}
	t.Setenv(KubernetesEnv, "1.2")
	if got, err := EnsureKarpenter(t.Context(), nil); err != nil || got != want {
		t.Errorf("the wanted version gave %+v (%v)", got, err)
	}
	t.Setenv(KubernetesEnv, "1.3")
	if got, err := EnsureKarpenter(t.Context(), nil); err == nil {
		t.Errorf("another version than the prebuilt one gave %+v", got)
	}
	t.Setenv(KubernetesEnv, "")
	if _, err := EnsureOlderKarpenter(t.Context(), nil); err == nil || !strings.Contains(err.Error(), SourceEnv) {
		t.Errorf("a program that is not prebuilt gave %v, want what to set", err)
	}
}

func TestPrebuiltDirectoryMustExist(t *testing.T) {
	t.Setenv(ProgramsEnv, "/nonexistent")
	if _, err := Ensure(t.Context(), nil); err == nil || !strings.Contains(err.Error(), ProgramsEnv) {
		t.Errorf("got error %v, want the variable in it", err)
	}
}
