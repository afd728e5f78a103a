package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// image is any AMI: the emulator takes all.
const image = "ami-0a1b2c3d4e5f60718"

// launchAll creates instances that become nodes.
func (p *player) launchAll(st NodeStatement) error {
	for _, name := range st.Names {
		if err := p.launch(name, st); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) launch(name string, st NodeStatement) error {
	input := ec2.LaunchInput{
		ImageID: image, Type: st.Type, Zone: st.Zone, Min: 1, Max: 1,
		Tags: map[string]string{"Name": name, machines.TagNodeLabels: st.Labels, machines.TagNodeTaints: st.Taints},
	}
	if st.Spot {
		input.Spot = &ec2.SpotOptions{}
	}
	made, err := p.sandbox.EC2().Launch(input)
	if err != nil {
		return fmt.Errorf("launching node %s: %w", name, err)
	}
	p.nodes[name] = made[0]
	p.do(func(w *World) []Moment {
		w.Launched(name, made[0].ID, made[0].PrivateDNSName)
		kind := "an on-demand instance"
		if st.Spot {
			kind = "a spot instance"
		}
		return []Moment{w.moment(time.Now(), MomentStep, name, "", fmt.Sprintf("%s is launched: %s in %s, %s", kind, made[0].ID, made[0].Zone, made[0].Type))}
	})
	return nil
}

// apply creates the objects of a file.
func (p *player) apply(ctx context.Context, st ApplyStatement) error {
	manifest, opens, err := fillIn(p.scenario.Files[st.File], time.Now())
	if err != nil {
		return err // the parser has read it before
	}
	text := st.File + " is applied"
	if !opens.IsZero() {
		p.do(func(w *World) []Moment { w.Opens(opens); return nil })
		text += "; its window opens at " + opens.Format("15:04 UTC")
	}
	err = CreateAll(ctx, p.client, manifest, func(obj *unstructured.Unstructured) {
		switch kind := obj.GetKind(); kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			p.do(func(w *World) []Moment { w.Applied(kind, obj.GetNamespace(), obj.GetName()); return nil })
		}
	})
	if err != nil {
		return fmt.Errorf("applying %s: %w", st.File, err)
	}
	p.addMoment(MomentStep, text)
	return nil
}

// CreateAll creates the objects of a manifest, in the namespace default if they name none. It calls
// created after each.
func CreateAll(ctx context.Context, c client.Client, manifest []byte, created func(*unstructured.Unstructured)) error {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := docs.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the manifest: %w", err)
		}
		if len(obj.Object) == 0 {
			continue // nothing between two ---
		}
		if namespaced, err := c.IsObjectNamespaced(obj); err == nil && namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace("default")
		}
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		created(obj)
	}
}

// ruleFile is an element of a file of rules.
type ruleFile struct {
	// Role is part of the rule's name, such as spot-interruption.
	Role    string          `json:"role"`
	Pattern json.RawMessage `json:"pattern"`
}

// setRules creates the rules, and deletes all others.
func (p *player) setRules(ctx context.Context, st RulesStatement) error {
	w := p.sandbox.Wiring()
	switch st.Set {
	case RulesNone:
		w.Rules = nil
	case RulesFrom:
		var list []ruleFile
		if err := json.Unmarshal(p.scenario.Files[st.File], &list); err != nil {
			return fmt.Errorf("reading %s: %w: write a list of {\"role\": …, \"pattern\": {…}}", st.File, err)
		}
		w.Rules = nil
		for _, r := range list {
			w.Rules = append(w.Rules, awssetup.Rule{Name: awssetup.RuleName(w.Cluster, r.Role), Pattern: string(r.Pattern)})
		}
	}
	var old []awssetup.Rule
	for _, name := range p.rules {
		old = append(old, awssetup.Rule{Name: name})
	}
	clients := p.sandbox.WiringClients()
	if err := awssetup.RemoveRules(ctx, clients.Events, old); err != nil {
		return err
	}
	if _, err := awssetup.Apply(ctx, clients, w); err != nil {
		return err
	}
	p.rules = nil
	var patterns []string
	for _, r := range w.Rules {
		p.rules = append(p.rules, r.Name)
		patterns = append(patterns, r.Pattern)
	}
	p.addMoment(MomentStep, "the EventBridge rules are now: "+strings.Join(append(patterns, "(no others)"), " "))
	return nil
}
