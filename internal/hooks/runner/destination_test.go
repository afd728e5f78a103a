package runner

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestAllowedWebhookAddresses(t *testing.T) {
	for _, c := range []struct {
		address string
		want    string // "", or the words of the refusal
		private string // the same with private addresses allowed
	}{
		{"52.94.236.248", "", ""},
		{"2600:1f18::1", "", ""},
		{"127.0.0.1", "loopback", "loopback"},
		{"127.9.9.9", "loopback", "loopback"},
		{"::1", "loopback", "loopback"},
		{"::ffff:127.0.0.1", "loopback", "loopback"},
		{"169.254.169.254", "special", "special"},
		{"::ffff:169.254.169.254", "special", "special"},
		{"64:ff9b::a9fe:a9fe", "special", "special"},
		{"2002:a9fe:a9fe::1", "special", "special"},
		{"fd00:ec2::254", "special", "special"},
		{"fe80::1%eth0", "special", "special"},
		{"0.0.0.0", "special", "special"},
		{"0.1.2.3", "special", "special"},
		{"::", "special", "special"},
		{"224.0.0.1", "special", "special"},
		{"255.255.255.255", "special", "special"},
		{"10.0.0.1", "private", ""},
		{"172.20.0.1", "private", ""},
		{"192.168.1.1", "private", ""},
		{"100.64.0.1", "private", ""},
		{"fd12::1", "private", ""},
		{"64:ff9b::a00:1", "private", ""},
	} {
		for _, allowed := range []bool{false, true} {
			want := c.want
			if allowed {
				want = c.private
			}
			err := Destinations{Private: allowed}.check(netip.MustParseAddr(c.address))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, private %v: %v, want %q", c.address, allowed, err, want)
			}
		}
	}
}

// A name is checked after its resolution: localhost stands for any name that
// leads to a refused address.
func TestHostnameOfDeniedAddress(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		response, err := (&http.Client{Transport: Destinations{HTTP: true, Private: true}.transport()}).Get("http://" + host + ":" + u.Port())
		if err == nil {
			response.Body.Close()
		}
		if err == nil || called || !strings.Contains(err.Error(), "may not call the loopback address") {
			t.Errorf("%s: %v, called: %v", host, err, called)
		}
	}
}

func TestHTTPSIsRequiredByDefault(t *testing.T) {
	plain, secure := &url.URL{Scheme: "http", Host: "x"}, &url.URL{Scheme: "https", Host: "x"}
	if (Destinations{}).checkScheme(plain) == nil || (Destinations{}).checkScheme(secure) != nil || (Destinations{HTTP: true}).checkScheme(plain) != nil {
		t.Error("the scheme is not checked")
	}
}
