package wire_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type thing struct {
	ID   string    `xml:"thingId"`
	Name string    `json:"name" xml:"name"`
	At   wire.Time `json:"at" xml:"at"`
	Tags wire.Set[struct {
		Key string `xml:"key"`
	}] `json:"-" xml:"tagSet"`
	Users wire.Members[string] `json:"-" xml:"Users"`
}

type thingInput struct {
	Name string `json:"name" query:"Name"`
}

// actions are those of every service in these tests.
var actions = map[string]wire.Action{
	"GetThing": wire.Do(func(_ context.Context, r *wire.Request, in *thingInput) (*thing, error) {
		id := "t-1"
		if r.Protocol == wire.RESTJSON {
			id = r.Param("id") + "/" + strings.Join(r.Params("key"), "+")
		}
		return &thing{ID: id, Name: in.Name, At: wire.Time{Time: time.UnixMilli(1778487242500)}, Users: wire.Members[string]{"a", "b"}}, nil
	}),
	"DeleteThing": wire.Do(func(context.Context, *wire.Request, *wire.None) (*wire.None, error) { return nil, nil }),
	"Refuse": wire.Do(func(context.Context, *wire.Request, *wire.None) (*wire.None, error) {
		return nil, &wire.Error{Code: "ThingNotFound", QueryCode: "Thing.NotFound", Message: "no <thing>", Fields: map[string]any{"thingId": "t-1"}}
	}),
	"Break": func(context.Context, *wire.Request) (any, error) { return nil, errors.New("disk full") },
	"Panic": func(context.Context, *wire.Request) (any, error) { panic("at the disco") },
}

func newRouter(t *testing.T, log *bytes.Buffer) *wire.Router {
	t.Helper()
	paths := map[string]string{
		"GET /things/{id}": "GetThing", "DELETE /things/{id}": "DeleteThing", "POST /refuse": "Refuse", "POST /break": "Break",
	}
	router, err := wire.NewRouter(wire.Scope{Account: "123456789012", Region: "eu-west-1"}, slog.New(slog.NewTextHandler(log, nil)), newGate(), []wire.Service{
		{Name: "both", Protocol: wire.Query, TargetPrefix: "Both", ErrorNamespace: "com.both", QueryCompatible: true, XMLNamespace: "urn:both", Actions: actions},
		{Name: "json", Protocol: wire.JSON11, TargetPrefix: "Json", Actions: actions},
		{Name: "ec2", Protocol: wire.EC2Query, XMLNamespace: "urn:ec2", Actions: actions},
		{Name: "fis", Protocol: wire.RESTJSON, Actions: actions, Paths: paths},
		{Name: "global", Protocol: wire.Query, AnyRegion: true, Actions: actions},
	})
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// call describes a request by what makes it an AWS request.
type call struct {
	service, region string // of the credential; no service means no credential
	target          string
	method, path    string
	contentType     string
	body            string
}

const (
	form   = "application/x-www-form-urlencoded"
	json10 = "application/x-amz-json-1.0"
	json11 = "application/x-amz-json-1.1"
	xml    = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	fault  = "The request processing has failed because of an unknown error, exception or failure."
)

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (c call) do(router http.Handler) *httptest.ResponseRecorder {
	method, path, region := c.method, c.path, c.region
	if method == "" {
		method, path = http.MethodPost, "/"+path
	}
	if region == "" {
		region = "eu-west-1"
	}
	r := httptest.NewRequest(method, path, strings.NewReader(c.body))
	r.Header.Set("Content-Type", c.contentType)
	if c.target != "" {
		r.Header.Set("X-Amz-Target", c.target)
	}
	if c.service != "" {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260511/"+region+"/"+c.service+"/aws4_request, SignedHeaders=host, Signature=0")
	}
	w := httptest.NewRecorder()
	router.ServeHTTP(w, r)
	return w
}

// both is the namespace attribute of the service both.
const both = ` xmlns="urn:both"`

func queryError(xmlns, typ, code, message string) string {
	return xml + `<ErrorResponse` + xmlns + `><Error><Type>` + typ + `</Type><Code>` + code + `</Code><Message>` + message +
		`</Message></Error><RequestId>ID</RequestId></ErrorResponse>`
}

func ec2Error(code, message string) string {
	return xml + `<Response><Errors><Error><Code>` + code + `</Code><Message>` + message + `</Message></Error></Errors><RequestID>ID</RequestID></Response>`
}

type routerCase struct {
	name   string
	call   call
	status int
	want   string
	header string // "Name: value"
}

func (tc routerCase) run(t *testing.T) {
	var log bytes.Buffer
	w := tc.call.do(newRouter(t, &log))
	got := requestID.ReplaceAllString(w.Body.String(), "ID")
	if diff := cmp.Diff(tc.want, got); diff != "" || w.Code != tc.status {
		t.Errorf("status %d, want %d; body (-want +got):\n%s", w.Code, tc.status, diff)
	}
	if name, value, ok := strings.Cut(tc.header, ": "); ok && w.Header().Get(name) != value {
		t.Errorf("header %s = %q, want %q", name, w.Header().Get(name), value)
	}
	if id := w.Header().Get("x-amzn-RequestId"); !requestID.MatchString(id) {
		t.Errorf("request id = %q", id)
	}
	if logged := strings.Contains(log.String(), "InternalFailure"); logged != (tc.status == http.StatusInternalServerError) {
		t.Errorf("log: %s", log.String())
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []routerCase{
		{"JSON 1.0", call{service: "both", target: "Both.GetThing", contentType: json10, body: `{"name":"<x>"}`},
			200, `{"ID":"t-1","name":"<x>","at":1778487242.5}`, "Content-Type: " + json10},
		{"JSON 1.1", call{service: "json", target: "Json.GetThing", contentType: json11, body: `{}`},
			200, `{"ID":"t-1","name":"","at":1778487242.5}`, "Content-Type: " + json11},
		{"JSON without output", call{service: "json", target: "Json.DeleteThing", contentType: json11, body: `{}`}, 200, `{}`, ""},
		{"Query", call{service: "both", contentType: form, body: "Action=GetThing&Name=%3Cx%3E"},
			200, xml + `<GetThingResponse xmlns="urn:both"><GetThingResult><thingId>t-1</thingId><name>&lt;x&gt;</name><at>2026-05-11T08:14:02.500Z</at><tagSet></tagSet>` +
				`<Users><member>a</member><member>b</member></Users></GetThingResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></GetThingResponse>`, "Content-Type: text/xml"},
		{"Query by GET", call{service: "both", method: "GET", path: "/?Action=DeleteThing"},
			200, xml + `<DeleteThingResponse xmlns="urn:both"><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></DeleteThingResponse>`, ""},
		{"EC2", call{service: "ec2", contentType: form, body: "Action=GetThing&Name=n"},
			200, xml + `<GetThingResponse xmlns="urn:ec2"><requestId>ID</requestId><thingId>t-1</thingId><name>n</name><at>2026-05-11T08:14:02.500Z</at><tagSet></tagSet>` +
				`<Users><member>a</member><member>b</member></Users></GetThingResponse>`, "Content-Type: text/xml;charset=UTF-8"},
		{"EC2 without output", call{service: "ec2", contentType: form, body: "Action=DeleteThing"},
			200, xml + `<DeleteThingResponse xmlns="urn:ec2"><requestId>ID</requestId><return>true</return></DeleteThingResponse>`, ""},
		{"REST", call{service: "fis", method: "GET", path: "/things/arn%3Aaws%2Fx?key=a&key=b"},
			200, `{"ID":"arn:aws/x/a+b","name":"","at":1778487242.5}`, "Content-Type: application/json"},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []routerCase{
		{"JSON error", call{service: "json", target: "Json.Refuse", contentType: json11},
			400, `{"__type":"ThingNotFound","message":"no <thing>","thingId":"t-1"}`, "x-amzn-query-error: "},
		{"JSON error of a service that spoke Query", call{service: "both", target: "Both.Refuse", contentType: json10},
			400, `{"__type":"com.both#ThingNotFound","message":"no <thing>","thingId":"t-1"}`, "x-amzn-query-error: Thing.NotFound;Sender"},
		{"Query error", call{service: "both", contentType: form, body: "Action=Refuse"}, 400, queryError(both, "Sender", "Thing.NotFound", "no &lt;thing&gt;"), ""},
		{"EC2 error", call{service: "ec2", contentType: form, body: "Action=Refuse"}, 400, ec2Error("Thing.NotFound", "no &lt;thing&gt;"), ""},
		{"REST error", call{service: "fis", method: "POST", path: "/refuse"},
			400, `{"__type":"ThingNotFound","message":"no <thing>","thingId":"t-1"}`, "x-amzn-ErrorType: ThingNotFound"},
		{"failure", call{service: "both", contentType: form, body: "Action=Break"}, 500, queryError(both, "Receiver", "InternalFailure", fault), ""},
		{"failure in REST", call{service: "fis", method: "POST", path: "/break"},
			500, `{"__type":"InternalFailure","message":"` + fault + `"}`, "x-amzn-ErrorType: InternalFailure"},
		{"panic", call{service: "json", target: "Json.Panic", contentType: json11}, 500, `{"__type":"InternalFailure","message":"` + fault + `"}`, ""},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestRequestsWithoutAction(t *testing.T) {
	for _, tc := range []routerCase{
		{"unknown action in JSON", call{service: "both", target: "Both.Fly", contentType: json10},
			400, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":""}`, "x-amzn-query-error: InvalidAction;Sender"},
		{"unknown action in Query", call{service: "both", contentType: form, body: "Action=Fly"},
			400, queryError(both, "Sender", "InvalidAction", "The action Fly is not valid for this web service."), ""},
		{"unknown action in EC2", call{service: "ec2", contentType: form, body: "Action=Fly"},
			400, ec2Error("InvalidAction", "The action Fly is not valid for this web service."), ""},
		{"unknown path", call{service: "fis", method: "GET", path: "/fly"},
			404, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":""}`, "x-amzn-ErrorType: UnknownOperationException"},
		{"unknown service", call{service: "s3", contentType: form, body: "Action=GetThing"},
			400, queryError("", "Sender", "InvalidAction", "The service &#34;s3&#34; is not emulated here."), ""},
		{"malformed JSON", call{service: "json", target: "Json.GetThing", contentType: json11, body: `{`},
			400, `{"__type":"com.amazon.coral.service#SerializationException","message":"unexpected end of JSON input"}`, ""},
		{"malformed form", call{service: "ec2", contentType: form, body: "Action=GetThing&x=%zz"},
			400, ec2Error("InvalidParameterValue", "reading form: invalid URL escape &#34;%zz&#34;"), ""},
		{"too large", call{service: "both", contentType: form, body: "Action=GetThing&Name=" + strings.Repeat("x", 8<<20)},
			413, queryError(both, "Sender", "RequestEntityTooLarge", "Request size exceeded 8388608 bytes"), ""},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestCredentials(t *testing.T) {
	for _, tc := range []routerCase{
		{"no credential in JSON", call{target: "Json.GetThing", contentType: json11},
			400, `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`, ""},
		{"no credential in Query", call{contentType: form, body: "Action=GetThing"},
			403, queryError(both, "Sender", "MissingAuthenticationToken", "Request is missing Authentication Token"), ""},
		{"no credential, nothing else", call{},
			403, queryError("", "Sender", "MissingAuthenticationToken", "Request is missing Authentication Token"), ""},
		{"another region", call{service: "json", region: "us-east-1", target: "Json.GetThing", contentType: json11},
			403, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Credential should be scoped to a valid region, not 'us-east-1'; this endpoint is 'eu-west-1'."}`, ""},
		{"another region of a global service", call{service: "global", region: "us-east-1", contentType: form, body: "Action=DeleteThing"},
			200, xml + `<DeleteThingResponse><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></DeleteThingResponse>`, ""},
		{"presigned", call{method: "GET", path: "/?Action=DeleteThing&X-Amz-Credential=AKIA%2F20260511%2Feu-west-1%2Fec2%2Faws4_request"},
			200, xml + `<DeleteThingResponse xmlns="urn:ec2"><requestId>ID</requestId><return>true</return></DeleteThingResponse>`, ""},
		{"signature version 2", call{method: "GET", path: "/?Action=DeleteThing&AWSAccessKeyId=AKIA"},
			200, xml + `<DeleteThingResponse xmlns="urn:both"><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></DeleteThingResponse>`, ""},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestRouterRejectsInvalidTables(t *testing.T) {
	good := wire.Service{Name: "a", Protocol: wire.Query, Actions: actions}
	for name, services := range map[string][]wire.Service{
		"registered twice": {good, good},
		"no actions":       {{Name: "a", Protocol: wire.Query}},
		"no protocol":      {{Name: "a", Actions: actions}},
		"unknown action":   {{Name: "a", Protocol: wire.RESTJSON, Actions: actions, Paths: map[string]string{"GET /x": "Fly"}}},
	} {
		if _, err := wire.NewRouter(wire.Scope{}, slog.New(slog.DiscardHandler), newGate(), services); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestScope(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1":     "arn:aws:sqs:eu-west-1:123456789012:q",
		"cn-north-1":    "arn:aws-cn:sqs:cn-north-1:123456789012:q",
		"us-gov-west-1": "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q",
	} {
		if got := (wire.Scope{Account: "123456789012", Region: region}).ARN("sqs", "q"); got != want {
			t.Errorf("ARN = %s, want %s", got, want)
		}
	}
}
