package observer

import (
	"net/url"
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

func TestAnswerNamesInstanceOrToken(t *testing.T) {
	t.Parallel()
	executions := []autoscaling.HookExecution{{InstanceID: "i-a", Token: "t-a"}, {InstanceID: "i-b", Token: "t-b"}}
	for _, c := range []struct {
		call url.Values
		want string
	}{
		{url.Values{"LifecycleActionToken": {"t-b"}}, "i-b"},
		{url.Values{"InstanceId": {"i-b"}}, "i-b"},
		{url.Values{"LifecycleActionToken": {"t-b"}, "InstanceId": {"i-b"}}, "i-b"},
	} {
		if got := answered(c.call, executions); got != c.want {
			t.Errorf("%v answers for %q, want %s", c.call, got, c.want)
		}
	}
}
