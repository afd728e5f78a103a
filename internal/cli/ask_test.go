package cli

import (
	"context"
	"strings"
	"testing"
)

// ctrlC is a keyboard on which the user presses Ctrl-C at the first read.
type ctrlC struct {
	press func()
	ended <-chan struct{}
}

func (k ctrlC) Read([]byte) (int, error) {
	k.press()
	<-k.ended
	return 0, context.Canceled
}

func TestCtrlCCancelsPrompt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		asks string
		of   func(t *testing.T) *harness
	}{
		"before AWS resources are changed": {[]string{"aws", "setup", "--sandbox=default", "--cluster", "prod"}, "Continue?", func(t *testing.T) *harness {
			return newAWSAccount(t).harness
		}},
		"of which nodes to interrupt": {[]string{"interrupt", "--interactive", "--sandbox=default"}, "Which?", func(t *testing.T) *harness {
			_, h, _ := spotCluster(t)
			return h
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, press := context.WithCancel(t.Context())
			h := tc.of(t)
			use := h.setup
			h.interactive, h.setup = true, func(s *session) {
				use(s)
				s.env.In = ctrlC{press, t.Context().Done()}
			}
			got := h.run(ctx, tc.args...)
			if got.code != ExitInterrupted || !strings.Contains(got.err, tc.asks) || !strings.HasSuffix(got.err, "\ninterrupted\n") {
				t.Errorf("exit %d, standard error:\n%s", got.code, got.err)
			}
		})
	}
}
