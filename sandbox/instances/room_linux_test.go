package instances

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

func TestRoom(t *testing.T) {
	if err := room(1); err != nil {
		need.Missing(t, err.Error())
	}
	err := room(100_000) // more than any machine allows
	if err == nil || !strings.Contains(err.Error(), "sysctl -w fs.inotify.max_user_instances") {
		t.Errorf("room() = %v, want what to set", err)
	}
	if err := room(1); err != nil {
		t.Errorf("what was tried was not given back: %v", err)
	}
}
