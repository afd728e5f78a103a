package emulatortest

import (
	"net/http"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// HTTPClient is a client for SDKs that talk to an emulated account, which ends with
// the test.
func HTTPClient(t testing.TB) *http.Client {
	t.Helper()
	client := awshttp.NewClient()
	t.Cleanup(client.CloseIdleConnections)
	return client
}
