package events

import (
	"encoding/json"
	"testing"
	"time"
)

// AWS's services and samples write different envelopes.
func TestEnvelopes(t *testing.T) {
	e := Event{
		ID: "1", Source: "aws.ec2", DetailType: "X", Account: "2", Region: "r", Detail: json.RawMessage(`{}`),
		Time: time.Date(2026, 5, 11, 8, 12, 37, 214_000_000, time.UTC),
	}
	const head = `{"version":"0","id":"1","detail-type":"X","source":"aws.ec2","account":"2","time":"2026-05-11T08:12:37`
	one := e
	one.Resources = []string{"arn"}
	scalar, without, exact := one, one, one
	scalar.ScalarResources, without.NoResources, exact.Milliseconds = true, true, true
	for want, e := range map[string]Event{
		head + `Z","region":"r","resources":[],"detail":{}}`:          e,
		head + `Z","region":"r","resources":["arn"],"detail":{}}`:     one,
		head + `Z","region":"r","resources":"arn","detail":{}}`:       scalar,
		head + `Z","region":"r","detail":{}}`:                         without,
		head + `.214Z","region":"r","resources":["arn"],"detail":{}}`: exact,
	} {
		got, err := e.MarshalJSON()
		if err != nil || string(got) != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
	}
}
