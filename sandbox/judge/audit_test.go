package judge

import (
	"strings"
	"testing"
)

func TestAuditLogIsReadInOrder(t *testing.T) {
	const log = `{"verb":"patch","user":{"username":"b"},"objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-11-01T03:00:01.000001Z","stageTimestamp":"2026-11-01T03:00:02.000000Z","responseObject":{"metadata":{"name":"n"}}}
{"verb":"create","user":{"username":"a"},"objectRef":{"resource":"pods","subresource":"eviction","namespace":"x","name":"p"},"responseStatus":{"code":429},"requestReceivedTimestamp":"2026-11-01T03:00:00Z","stageTimestamp":"2026-11-01T03:00:01Z"}
{"verb":"create","user"`
	got, err := ReadAudit(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].User != "a" || got[0].accepted() || got[1].Name != "n" || !got[1].accepted() || got[1].Object == nil {
		t.Errorf("read %+v", got)
	}
}

// The response to the first patch took longer than that to the second one.
func TestWritesOfOneObjectAreInTheOrderOfVersions(t *testing.T) {
	line := func(user, version, completed string) string {
		return `{"verb":"patch","user":{"username":"` + user + `"},"objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-01T03:00:0` +
			completed + `Z","responseObject":{"metadata":{"name":"n","resourceVersion":"` + version + `"}}}` + "\n"
	}
	got, err := ReadAudit(strings.NewReader(line("first", "9", "5") + line("second", "10", "4") + line("third", "11", "6")))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].User != "first" || got[1].User != "second" || got[2].User != "third" {
		t.Errorf("read %+v", got)
	}
}

func TestUnreadableAuditLogIsAnError(t *testing.T) {
	if _, err := ReadAudit(strings.NewReader("{\"verb\":\n")); err == nil {
		t.Error("no error")
	}
}

// A client that asks for metadata only gets no object back: it follows from the patch.
func TestObjectFollowsFromThePatch(t *testing.T) {
	b := bodies{}
	for _, step := range []struct{ verb, body, object, want string }{
		{"create", `{"metadata":{"name":"i"},"spec":{"a":1}}`, `{"kind":"PartialObjectMetadata"}`, `{"metadata":{"name":"i"},"spec":{"a":1}}`},
		{"patch", `[{"op":"add","path":"/status","value":{"phase":"Draining"}}]`, `{"kind":"PartialObjectMetadata"}`, `{"metadata":{"name":"i"},"spec":{"a":1},"status":{"phase":"Draining"}}`},
		{"patch", `{"spec":{"a":null,"b":2}}`, `{"kind":"PartialObjectMetadata"}`, `{"metadata":{"name":"i"},"spec":{"b":2},"status":{"phase":"Draining"}}`},
		{"update", ``, `{"kind":"Interruption","spec":{}}`, `{"kind":"Interruption","spec":{}}`},
		{"patch", `{}`, `{"kind":"Status"}`, ``},
	} {
		got, err := b.of(Request{Resource: "interruptions", Name: "i", Verb: step.verb, Body: []byte(step.body), Object: []byte(step.object)})
		if err != nil || string(got) != step.want {
			t.Errorf("after %s %s: %s, %v; want %s", step.verb, step.body, got, err, step.want)
		}
	}
}
