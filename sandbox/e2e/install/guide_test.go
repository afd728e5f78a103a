//go:build e2e

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/doccommands"
)

// guide runs the commands of the guide's section "Check the installation", one by one, for a node
// without pods of users.
func (w *world) guide() {
	w.boot("w4", workerPool)
	w.waitReady("w4")
	text, err := os.ReadFile(filepath.Join(root, "docs/guides/install.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## 4. Check the installation")
	blocks := doccommands.Blocks(section)
	if len(blocks) == 0 {
		w.t.Fatal("the guide has no such section, or no commands in it")
	}
	st := w.State()
	for line := range strings.Lines(blocks[0].Text) {
		command, _, _ := strings.Cut(line, "#")
		command = strings.ReplaceAll(strings.TrimSpace(command), "NODE", w.instances["w4"].PrivateDNSName)
		if strings.HasPrefix(command, "lifeboat interrupt ") {
			command += " --yes" // a person confirms
		}
		began := time.Now()
		cmd := exec.CommandContext(w.t.Context(), "bash", "-ec", command)
		cmd.Dir = w.dir
		cmd.Env = append(w.env(),
			"AWS_ENDPOINT_URL="+st.AWSEndpoint, "AWS_REGION="+st.Region,
			"AWS_ACCESS_KEY_ID="+st.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+st.SecretAccessKey)
		out, err := cmd.CombinedOutput()
		w.t.Logf("FIGURES %s: %.1f s\n%s", command, time.Since(began).Seconds(), out)
		if err != nil {
			w.t.Errorf("%s: %v", command, err)
		}
	}
	w.until("the node of the drill to be drained", func(ctx context.Context) (bool, error) {
		r := &v1beta1.Interruption{}
		err := w.client.Get(ctx, types.NamespacedName{Name: w.instances["w4"].ID}, r)
		return r.Status.Phase == v1beta1.PhaseDrained, errors.Join(err, fmt.Errorf("it is %s", r.Status.Phase))
	})
}
