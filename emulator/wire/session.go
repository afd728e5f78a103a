package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// longestSkew is how far the time of a signature may be from AWS's clock (IAM User Guide, "Elements of an
// AWS API request signature"). EC2 documents 15 minutes (EC2 API Reference, "Common client error codes").
const (
	longestSkew    = 5 * time.Minute
	longestSkewEC2 = 15 * time.Minute
)

// amzTime is the form of the time of a signature.
const amzTime = "20060102T150405Z"

// signedAt is the time of the signature; zero if the request has none.
func signedAt(r *http.Request, form url.Values) time.Time {
	text := r.Header.Get("X-Amz-Date")
	if text == "" {
		text = form.Get("X-Amz-Date")
	}
	at, err := time.Parse(amzTime, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// checkTime rejects a request whose signature has a time too far from AWS's clock. The message of
// services other than EC2 is that of AWS's front end.
func checkTime(p Protocol, signed, now time.Time) error {
	most := longestSkew
	if p == EC2Query {
		most = longestSkewEC2
	}
	if signed.IsZero() || signed.Sub(now).Abs() <= most {
		return nil
	}
	if p == EC2Query {
		return &Error{Code: "RequestExpired", Message: "Request has expired."}
	}
	stamp := func(t time.Time) string { return t.UTC().Format(amzTime) }
	message := fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)", stamp(signed), stamp(now.Add(-most)), stamp(now))
	if signed.After(now) {
		message = fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)", stamp(signed), stamp(now.Add(most)), stamp(now))
	}
	e := &Error{
		Status: http.StatusForbidden, Code: "InvalidSignatureException", QueryCode: "SignatureDoesNotMatch", Namespace: Coral, Message: message,
	}
	if p == JSON10 || p == JSON11 {
		e.Status = http.StatusBadRequest
	}
	return e
}

// expired is the error for temporary credentials that have expired (the common errors of each API
// reference; STS API Reference, ExpiredToken).
func expired(p Protocol) error {
	if p == EC2Query {
		return &Error{Code: "RequestExpired", Message: "Request has expired."}
	}
	e := &Error{
		Status: http.StatusForbidden, Code: "ExpiredTokenException", QueryCode: "ExpiredToken", Namespace: Coral,
		Message: "The security token included in the request is expired",
	}
	if p == JSON10 || p == JSON11 {
		e.Status = http.StatusBadRequest
	}
	return e
}
