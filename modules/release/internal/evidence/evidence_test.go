package evidence

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lifeboat-dev/lifeboat/modules/release/internal/source"
)

func newKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func verified(t *testing.T, key *ecdsa.PrivateKey, data []byte, signature string) bool {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return ecdsa.VerifyASN1(&key.PublicKey, sum[:], raw)
}

func TestSignatureIsDeterministicAndVerifies(t *testing.T) {
	key, text := newKey(t)
	t.Setenv(KeyEnv, text)
	read, err := Key()
	if err != nil || !read.Equal(key) {
		t.Fatalf("read another key (%v)", err)
	}
	first, err := Sign(read, []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Sign(key, []byte("data")); err != nil || second != first {
		t.Errorf("a second signature differs (%v)", err)
	}
	if !verified(t, key, []byte("data"), first) || verified(t, key, []byte("other"), first) {
		t.Error("the signature does not belong to the data alone")
	}
}

func TestKeyErrorsSayWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"cosign.key": "not its path",
		"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n": "openssl ecparam",
	} {
		if _, err := parseKey([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q in it", text, err, want)
		}
	}
	t.Setenv(KeyEnv, "")
	if key, err := Key(); key != nil || err != nil {
		t.Errorf("without a key: got %v, %v", key, err)
	}
}

// The format is that of cosign's specification of signatures.
func TestImageSignatureForm(t *testing.T) {
	key, _ := newKey(t)
	digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)}
	img, err := ImageSignature(key, "example.com/lifeboatd", digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("the signature has %+v (%v)", manifest, err)
	}
	l := manifest.Layers[0]
	if l.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" || manifest.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
		t.Errorf("the media types are %s and %s", l.MediaType, manifest.Config.MediaType)
	}
	layer, err := img.LayerByDigest(l.Digest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"critical":{"identity":{"docker-reference":"example.com/lifeboatd"},"image":{"docker-manifest-digest":"` +
		digest.String() + `"},"type":"cosign container image signature"},"optional":null}`
	if string(text) != want {
		t.Errorf("the payload is %s, want %s", text, want)
	}
	if !verified(t, key, text, l.Annotations["dev.cosignproject.cosign/signature"]) {
		t.Error("the signature does not verify")
	}
	if got, want := SignatureTag(digest), "sha256-"+digest.Hex+".sig"; got != want {
		t.Errorf("the tag is %s, want %s", got, want)
	}
}

func TestSBOMListsProgramsAndModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := SBOM(source.Source{Version: "1.2.3", Commit: "c0ffee", Time: time.Unix(0, 0).UTC()}, []Program{{"one", data}, {"two", data}})
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{doc.ID: true}
	purls := map[string]bool{}
	for _, p := range doc.Packages {
		if ids[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		ids[p.ID] = true
		for _, r := range p.References {
			purls[r.Locator] = true
		}
	}
	for _, r := range doc.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%+v names something that is not listed", r)
		}
	}
	// The linker records no other modules in the program of a test.
	if want := "pkg:golang/stdlib@" + runtime.Version(); !purls[want] {
		t.Errorf("the list lacks %s", want)
	}
	if !ids["SPDXRef-Program-one"] || !ids["SPDXRef-Program-two"] {
		t.Error("the list lacks a program")
	}
}
