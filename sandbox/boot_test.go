package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func TestOrdinaryBootTakes30To60Seconds(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 1000 {
		id := fmt.Sprintf("i-%017x", i)
		d := sandbox.OrdinaryBoot(id)
		if d < 30*time.Second || d > 60*time.Second {
			t.Fatalf("%s boots in %s", id, d)
		}
		if d != sandbox.OrdinaryBoot(id) {
			t.Fatalf("%s has two boot times", id)
		}
		seen[d] = true
	}
	if len(seen) != 31 {
		t.Errorf("%d different boot times, want each whole second from 30 to 60", len(seen))
	}
}
