// Package evidence writes what proves the origin and the content of a release: checksums,
// signatures, provenance and the list of modules.
package evidence

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// KeyEnv names the variable with the signing key: a P-256 private key in PEM, SEC 1 or
// PKCS #8, not encrypted.
const KeyEnv = "LIFEBOAT_SIGNING_KEY"

// Key returns the signing key, and nil if there is none.
func Key() (*ecdsa.PrivateKey, error) {
	text := os.Getenv(KeyEnv)
	if text == "" {
		return nil, nil
	}
	key, err := parseKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the signing key in $%s: %w", KeyEnv, err)
	}
	return key, nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM: write the text of the key's file, not its path")
	}
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("it is a %q: keys that cosign encrypted are not read; make one with openssl ecparam -name prime256v1 -genkey -noout", block.Type)
	}
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, errors.New("it is no P-256 key")
	}
	return ec, nil
}

// PublicKey returns the key to verify with, as PEM.
func PublicKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Sign returns the signature of data as `cosign sign-blob` writes it, in base64. Without a source
// of randomness the signature depends on key and data only (RFC 6979).
func Sign(key *ecdsa.PrivateKey, data []byte) (string, error) {
	digest := sha256.Sum256(data)
	signature, err := key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

// SignatureTag is the tag at which cosign looks for the signature of an image.
func SignatureTag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex + ".sig" }

// Media types and annotations of cosign
// (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md).
const (
	simpleSigning       = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// payload is the "simple signing" payload.
type payload struct {
	Critical struct {
		Identity struct {
			DockerReference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// ImageSignature returns the image that holds the signature of the image with that digest.
// repository may be empty: cosign compares digests.
func ImageSignature(key *ecdsa.PrivateKey, repository string, digest v1.Hash) (v1.Image, error) {
	var p payload
	p.Critical.Identity.DockerReference = repository
	p.Critical.Image.Digest = digest.String()
	p.Critical.Type = "cosign container image signature"
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	signature, err := Sign(key, text)
	if err != nil {
		return nil, err
	}
	return mutate.Append(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: static.NewLayer(text, simpleSigning), Annotations: map[string]string{signatureAnnotation: signature}},
	)
}
