package wire

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Request is one API call.
type Request struct {
	// ID is the request id that the answer carries.
	ID string
	// Service and Action name the called action.
	Service, Action string
	// Protocol is the protocol of the request and of the answer.
	Protocol Protocol
	// AccessKey is the caller's access key id; it is not verified.
	AccessKey string
	// BaseURL is this server as the caller addressed it: "http://127.0.0.1:4566".
	BaseURL string
	// Path is the decoded URL path.
	Path string
	// Form holds the parameters of Query requests.
	Form url.Values
	// Body is the body of JSON requests.
	Body []byte

	http *http.Request
}

// Param returns a parameter of a RESTJSON request, from its path ({name} in
// Service.Paths) or else from the query string.
func (r *Request) Param(name string) string {
	if v := r.http.PathValue(name); v != "" {
		return v
	}
	return r.http.URL.Query().Get(name)
}

// Params returns all values of a query string parameter of a RESTJSON request.
func (r *Request) Params(name string) []string {
	return r.http.URL.Query()[name]
}

// Value returns a string at the top of the input, by its name, in any protocol but
// RESTJSON; empty if there is none.
func (r *Request) Value(name string) string {
	if r.Protocol == Query || r.Protocol == EC2Query {
		return r.Form.Get(name)
	}
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(r.Body, &members) != nil || json.Unmarshal(members[name], &value) != nil {
		return ""
	}
	return value
}

// UserAgent is what the caller's client calls itself.
func (r *Request) UserAgent() string { return r.http.UserAgent() }

// SourceIP is the address that the call came from.
func (r *Request) SourceIP() string {
	host, _, err := net.SplitHostPort(r.http.RemoteAddr)
	if err != nil {
		return r.http.RemoteAddr
	}
	return host
}

// Decode fills in, a pointer to a struct, from the request: JSON with encoding/json; forms with the
// "query" tags that FormDecode describes.
func (r *Request) Decode(in any) error {
	switch r.Protocol {
	case Query, EC2Query:
		if err := FormDecode(r.Form, in); err != nil {
			return malformed(r.Protocol, err)
		}
	default:
		if len(r.Body) == 0 {
			return nil
		}
		if err := json.Unmarshal(r.Body, in); err != nil {
			return malformed(r.Protocol, err)
		}
	}
	return nil
}

// credential is what the Authorization header, or its query string
// equivalent, says about the caller.
type credential struct {
	present   bool
	accessKey string
	region    string
	service   string
	signed    time.Time
}

// readCredential supports Signature Version 4, in the header and in presigned URLs, whose
// credential is KEY/DATE/REGION/SERVICE/aws4_request. Of other kinds of authorization it only
// records the presence.
func readCredential(r *http.Request, form url.Values) credential {
	scope := form.Get("X-Amz-Credential")
	if header := r.Header.Get("Authorization"); header != "" {
		_, after, _ := strings.Cut(header, "Credential=")
		scope, _, _ = strings.Cut(after, ",")
		if scope == "" {
			return credential{present: true}
		}
	}
	if scope == "" {
		key := form.Get("AWSAccessKeyId") // Signature Version 2
		return credential{present: key != "", accessKey: key}
	}
	parts := strings.Split(strings.TrimSpace(scope), "/")
	if len(parts) != 5 {
		return credential{present: true}
	}
	return credential{present: true, accessKey: parts[0], region: parts[2], service: parts[3], signed: signedAt(r, form)}
}

// jsonProtocol tells the JSON protocol by the content type, or 0.
func jsonProtocol(r *http.Request) Protocol {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case "application/x-amz-json-1.0":
		return JSON10
	case "application/x-amz-json-1.1":
		return JSON11
	}
	return 0
}

// readForm merges the query string and, if the body is a form, the body.
func readForm(r *http.Request, body []byte) (url.Values, error) {
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("reading query string: %w", err)
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return form, nil
	}
	posted, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("reading form: %w", err)
	}
	for name, values := range posted {
		form[name] = append(form[name], values...)
	}
	return form, nil
}

func baseURL(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
