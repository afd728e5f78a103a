package awshttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// TestLongResponsesAreReadInFull closes the request body as soon as the response
// begins, as the SDK does.
func TestLongResponsesAreReadInFull(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, long)
	}))
	defer server.Close()
	client := awshttp.NewClient()
	defer client.CloseIdleConnections()
	handler := smithyhttp.NewClientHandlerWithOptions(client)
	for i := range 500 {
		request, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
		if !ok {
			t.Fatal("no request")
		}
		request, err := request.SetStream(bytes.NewReader([]byte("body")))
		if err != nil {
			t.Fatal(err)
		}
		request.Method = http.MethodPost
		if request.URL, err = request.URL.Parse(server.URL); err != nil {
			t.Fatal(err)
		}
		out, _, err := handler.Handle(t.Context(), request)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		answer, ok := out.(*smithyhttp.Response)
		if !ok {
			t.Fatalf("call %d: answer is %T", i, out)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || len(text) != len(long) {
			t.Fatalf("call %d: %d bytes, %v", i, len(text), err)
		}
	}
}

func TestWithTimeout(t *testing.T) {
	given := awshttp.Use(aws.Config{})
	limited, ok := awshttp.WithTimeout(given, 7*time.Second).HTTPClient.(*http.Client)
	if !ok || limited.Timeout != 7*time.Second {
		t.Errorf("client %+v", limited)
	}
	if own, ok := given.HTTPClient.(*http.Client); !ok || own.Timeout != 0 || own.Transport != limited.Transport {
		t.Errorf("the given client is %+v", own)
	}
}
