package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files that `kubernetes control-plane --pki-dir` reads.
const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	serverCertFile = "apiserver.crt"
	serverKeyFile  = "apiserver.key"
	accountKeyFile = "service-account.key"
)

// certLifetime is longer than any sandbox lives; client-go's CA lives ten years too.
const certLifetime = 10 * 365 * 24 * time.Hour

// authority signs the certificates of one control plane.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// loadPKI reads the certificates in dir, and creates missing ones. The server's certificate is
// valid for hosts (names or IP addresses).
func loadPKI(dir string, hosts []string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the certificates' directory: %w", err)
	}
	ca, err := loadAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		ca, err = newAuthority(dir)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, accountKeyFile)); errors.Is(err, fs.ErrNotExist) {
		_, keyPEM, err := newKey()
		if err != nil {
			return nil, err
		}
		if err := writeFile(dir, accountKeyFile, keyPEM); err != nil {
			return nil, err
		}
	}
	// Issued again at every start: it is cheap, and hosts may have changed.
	certPEM, keyPEM, err := ca.issue(pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth, hosts)
	if err != nil {
		return nil, err
	}
	if err := writeFile(dir, serverCertFile, certPEM); err != nil {
		return nil, err
	}
	return ca, writeFile(dir, serverKeyFile, keyPEM)
}

func loadAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, caCertFile))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	certs, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate authority: %w", err)
	}
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority's key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading the certificate authority's key: a %T cannot sign", key)
	}
	return &authority{cert: certs[0], certPEM: certPEM, key: signer}, nil
}

func newAuthority(dir string) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	caCert, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "lifeboat sandbox"}, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	ca := &authority{cert: caCert, certPEM: encodeCert(caCert), key: key}
	// The certificate is written last: it marks the pair as complete.
	if err := writeFile(dir, caKeyFile, keyPEM); err != nil {
		return nil, err
	}
	return ca, writeFile(dir, caCertFile, ca.certPEM)
}

// issue makes a key and a certificate for one subject and use; hosts are for servers.
func (a *authority) issue(subject pkix.Name, use x509.ExtKeyUsage, hosts []string) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{use},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", subject.CommonName, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading back the certificate of %s: %w", subject.CommonName, err)
	}
	return encodeCert(signed), keyPEM, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, keyPEM, nil
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})
}

func writeFile(dir, name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
