package runner

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
)

// refusedAddress is an address that webhooks may not call.
type refusedAddress string

func (r refusedAddress) Error() string { return string(r) }

// describeFailure says why a request got no answer, in Lifeboat's own words. The error's
// text would repeat the URL, names in a certificate, or the server's answer.
func describeFailure(err error) string {
	var refused refusedAddress
	var dns *net.DNSError
	var errno syscall.Errno
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &dns):
		return "its name was not resolved: " + dns.Err
	case describeTLS(err) != "":
		return describeTLS(err)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection without an answer"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy did not connect to it"
	case errors.As(err, &op) && op.Timeout():
		return "it did not accept a connection in time"
	}
	return "its answer is not valid HTTP"
}

// describeTLS describes an error of TLS, or returns nothing.
func describeTLS(err error) string {
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var certificate x509.CertificateInvalidError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &host):
		return "its certificate is for another host"
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.As(err, &alert):
		return "it ended the TLS handshake: " + alert.Error()
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS on this port"
	}
	return ""
}
