package interruption

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// defects are defects that the model test must find. Each changes what the controller reads or
// sends, so that no switch is needed in the product.
var defects = map[string]struct {
	plant func(*modelRun, *Options)
	// found is a part of the failure that names the defect.
	found string
	first uint64 // the first seed
}{
	"a completed record forgets which notices it has handled": {
		plant: func(_ *modelRun, o *Options) { o.Client = forgetful{o.Client} },
		found: "is reopened without a notice that it did not have",
	},
	"every interrupted node counts as rebooted": {
		plant: func(r *modelRun, o *Options) { o.Nodes = otherBoot{o.Nodes, r} },
		found: "before its planned reboot",
	},
	"an instance whose pods do not stop is not terminated": {
		plant: func(r *modelRun, o *Options) { o.Cloud = patient{o.Cloud, r} },
		first: 1500, // it is rare
		found: "had to be terminated by",
	},
}

// TestModelFindsDefects plants each defect into runs of the model until one fails for it.
func TestModelFindsDefects(t *testing.T) {
	const runs = 2000
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := d.first; seed < d.first+runs; seed++ {
				r := playModel(t, seed, metrics, func(r *modelRun) { r.plant = d.plant })
				if at := slices.IndexFunc(r.wrong, func(wrong string) bool { return strings.Contains(wrong, d.found) }); at >= 0 {
					t.Logf("found in run %d: %.200s", seed, r.wrong[at])
					return
				}
			}
			t.Errorf("%d runs did not find it", runs)
		})
	}
}

// forgetful writes no handled notices into a completed record.
type forgetful struct{ client.Client }

func (c forgetful) Status() client.SubResourceWriter { return forgetfulStatus{c.Client.Status()} }

type forgetfulStatus struct{ client.SubResourceWriter }

func (w forgetfulStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var operations []map[string]any
	if err := json.Unmarshal(data, &operations); err != nil {
		return err
	}
	for _, op := range operations {
		if s, ok := op["value"].(map[string]any); ok && s["completionTime"] != nil {
			history, _ := s["history"].([]any)
			for _, e := range history {
				delete(e.(map[string]any), "handledNotices") //nolint:forcetypeassert // entries are objects
			}
		}
	}
	if data, err = json.Marshal(operations); err != nil {
		return err
	}
	return w.SubResourceWriter.Patch(ctx, o, client.RawPatch(p.Type(), data), opts...)
}

// otherBoot shows another boot id some time after a node was cordoned, when the record has
// the first one.
type otherBoot struct {
	NodeIndex
	run *modelRun
}

func (i otherBoot) NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error) {
	n, err := i.NodeIndex.NodeByInstance(ctx, instanceID)
	if at := i.run.bookkeeping.inst(instanceID).cordoned; n != nil && !at.IsZero() && i.run.c.Now().Sub(at) > 20*time.Second {
		n = n.DeepCopy()
		n.Status.NodeInfo.BootID = "another"
	}
	return n, err
}

// patient terminates no instance while pods are on its node.
type patient struct {
	cloud.Cloud
	run *modelRun
}

func (c patient) Terminate(ctx context.Context, instanceID string) error {
	if n := c.run.bookkeeping.inst(instanceID).node; len(c.run.Pods(func(p *corev1.Pod) bool { return model.On(n)(p) && !isStaying(p) })) > 0 {
		return nil
	}
	return c.Cloud.Terminate(ctx, instanceID)
}
