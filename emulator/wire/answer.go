package wire

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
)

// answer is an encoded response.
type answer struct {
	status      int
	contentType string
	header      map[string]string
	body        []byte
}

func (a *answer) write(w http.ResponseWriter, requestID string) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("x-amzn-RequestId", requestID)
	for name, value := range a.header {
		header.Set(name, value)
	}
	w.WriteHeader(a.status)
	// The client may be disconnected: the emulator ignores that.
	_, _ = w.Write(a.body)
}

func (p Protocol) contentType() string {
	switch p {
	case JSON10:
		return "application/x-amz-json-1.0"
	case JSON11:
		return "application/x-amz-json-1.1"
	case RESTJSON:
		return "application/json"
	case EC2Query:
		return "text/xml;charset=UTF-8"
	default:
		return "text/xml"
	}
}

// encode makes the answer to a successful call with output out, which is nil for actions without
// output.
func encode(s *Service, r *Request, out any) (*answer, error) {
	a := &answer{status: http.StatusOK, contentType: r.Protocol.contentType()}
	var err error
	switch r.Protocol {
	case Query:
		a.body, err = queryBody(s, r, out)
	case EC2Query:
		a.body, err = ec2Body(s, r, out)
	default:
		if out == nil {
			out = None{}
		}
		a.body, err = JSON(out)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding answer to %s: %w", r.Action, err)
	}
	return a, nil
}

// encodeError makes the answer to a failed call.
func encodeError(s *Service, r *Request, e *Error) *answer {
	a := &answer{status: e.status(), contentType: r.Protocol.contentType(), header: map[string]string{}}
	switch r.Protocol {
	case Query:
		a.body = errorXML(queryError{
			Xmlns: s.XMLNamespace, Type: e.fault(), Code: e.queryCode(), Message: e.Message, RequestID: r.ID,
		})
	case EC2Query:
		a.body = errorXML(ec2Error{Code: e.queryCode(), Message: e.Message, RequestID: r.ID})
	case RESTJSON:
		a.header["x-amzn-ErrorType"] = e.Code
		a.body = errorJSON(e, "")
	case JSON10, JSON11:
		if s.QueryCompatible {
			a.header["x-amzn-query-error"] = e.queryCode() + ";" + e.fault()
		}
		a.body = errorJSON(e, s.ErrorNamespace)
	}
	return a
}

// JSON is json.Marshal without the escaping of <, > and &, as AWS writes it.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// errorJSON is the body of an error: __type, message and the error's members. Strings and plain
// members always encode; if one does not, only the type remains.
func errorJSON(e *Error, namespace string) []byte {
	name := e.Code
	if e.Namespace != "" {
		namespace = e.Namespace
	}
	if namespace != "" {
		name = namespace + "#" + name
	}
	members := map[string]any{"__type": name, "message": e.Message}
	maps.Copy(members, e.Fields)
	body, err := JSON(members)
	if err != nil {
		return fmt.Appendf(nil, `{"__type":%q}`, name)
	}
	return body
}

type queryError struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Xmlns     string   `xml:"xmlns,attr,omitempty"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

type ec2Error struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

func errorXML(v any) []byte {
	body, err := xml.Marshal(v)
	if err != nil {
		// Structs of strings always encode.
		return nil
	}
	return append([]byte(xml.Header), body...)
}

// inner encodes v and strips its root element.
func inner(v any) ([]byte, error) {
	const open, shut = "<x>", "</x>"
	var b bytes.Buffer
	enc := xml.NewEncoder(&b)
	if err := enc.EncodeElement(v, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		return nil, err
	}
	body := b.Bytes()
	if !bytes.HasPrefix(body, []byte(open)) || !bytes.HasSuffix(body, []byte(shut)) {
		return nil, fmt.Errorf("%T does not encode as one element", v)
	}
	return body[len(open) : len(body)-len(shut)], nil
}

// queryBody is <XResponse><XResult>…</XResult><ResponseMetadata>…; actions
// without output have no XResult.
func queryBody(s *Service, r *Request, out any) ([]byte, error) {
	type result struct {
		XMLName xml.Name
		Inner   []byte `xml:",innerxml"`
	}
	response := struct {
		XMLName   xml.Name
		Xmlns     string `xml:"xmlns,attr,omitempty"`
		Result    *result
		RequestID string `xml:"ResponseMetadata>RequestId"`
	}{XMLName: xml.Name{Local: r.Action + "Response"}, Xmlns: s.XMLNamespace, RequestID: r.ID}
	if out != nil {
		body, err := inner(out)
		if err != nil {
			return nil, err
		}
		response.Result = &result{XMLName: xml.Name{Local: r.Action + "Result"}, Inner: body}
	}
	body, err := xml.Marshal(response)
	return append([]byte(xml.Header), body...), err
}

// ec2Body is <XResponse><requestId>…</requestId>…</XResponse>; actions without
// output say <return>true</return>.
func ec2Body(s *Service, r *Request, out any) ([]byte, error) {
	members := []byte("<return>true</return>")
	if out != nil {
		var err error
		if members, err = inner(out); err != nil {
			return nil, err
		}
	}
	response := struct {
		XMLName   xml.Name
		Xmlns     string `xml:"xmlns,attr,omitempty"`
		RequestID string `xml:"requestId"`
		Inner     []byte `xml:",innerxml"`
	}{XMLName: xml.Name{Local: r.Action + "Response"}, Xmlns: s.XMLNamespace, RequestID: r.ID, Inner: members}
	body, err := xml.Marshal(response)
	return append([]byte(xml.Header), body...), err
}
