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

	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// image is any AMI: the emulator takes all.
const image = "ami-0a1b2c3d4e5f60718"

// launch makes an instance that will become a node.
func (p *player) launch(st NodeStatement) error {
	input := ec2.LaunchInput{
		ImageID: image, Type: st.Type, Zone: st.Zone, Min: 1, Max: 1,
		Tags: map[string]string{"Name": st.Name, machines.TagNodeLabels: st.Labels, machines.TagNodeTaints: st.Taints},
	}
	if st.Spot {
		input.Spot = &ec2.SpotOptions{}
	}
	made, err := p.sandbox.EC2().Launch(input)
	if err != nil {
		return fmt.Errorf("launching node %s: %w", st.Name, err)
	}
	p.nodes[st.Name] = made[0]
	p.do(func(w *World) []Moment {
		w.Launched(st.Name, made[0].ID, made[0].PrivateDNSName)
		kind := "an on-demand instance"
		if st.Spot {
			kind = "a spot instance"
		}
		return []Moment{w.moment(time.Now(), MomentStep, st.Name, "", fmt.Sprintf("%s is launched: %s in %s, %s", kind, made[0].ID, made[0].Zone, made[0].Type))}
	})
	return nil
}

// apply creates the objects of a file.
func (p *player) apply(ctx context.Context, st ApplyStatement) error {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(p.scenario.Files[st.File]), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := docs.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", st.File, err)
		}
		if len(obj.Object) == 0 {
			continue // nothing between two ---
		}
		if namespaced, err := p.client.IsObjectNamespaced(obj); err == nil && namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace("default")
		}
		if err := p.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s %s of %s: %w", obj.GetKind(), obj.GetName(), st.File, err)
		}
		switch kind := obj.GetKind(); kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			p.do(func(w *World) []Moment { w.Applied(kind, obj.GetNamespace(), obj.GetName()); return nil })
		}
	}
	p.tell(MomentStep, st.File+" is applied")
	return nil
}

// ruleFile is what a file of rules holds: a list of these.
type ruleFile struct {
	// Role is what distinguishes the rule's name, such as spot-interruption.
	Role    string          `json:"role"`
	Pattern json.RawMessage `json:"pattern"`
}

// setRules puts the rules in place, and takes those away that are not among
// them.
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
			w.Rules = append(w.Rules, wiring.Rule{Name: wiring.RuleName(w.Cluster, r.Role), Pattern: string(r.Pattern)})
		}
	}
	var old []wiring.Rule
	for _, name := range p.rules {
		old = append(old, wiring.Rule{Name: name})
	}
	clients := p.sandbox.WiringClients()
	if err := wiring.RemoveRules(ctx, clients.Events, old); err != nil {
		return err
	}
	if _, err := wiring.Apply(ctx, clients, w); err != nil {
		return err
	}
	p.rules = nil
	var said []string
	for _, r := range w.Rules {
		p.rules = append(p.rules, r.Name)
		said = append(said, r.Pattern)
	}
	p.tell(MomentStep, "the EventBridge rules are now: "+strings.Join(append(said, "(that is all)"), " "))
	return nil
}

// interrupt starts the clock.
func (p *player) interrupt(ctx context.Context, st InterruptStatement) error {
	var ids []string
	for _, name := range st.Nodes {
		ids = append(ids, p.nodes[name].ID)
	}
	p.do(func(w *World) []Moment { w.Doom(st.Nodes); return nil })
	noticed := make(chan ec2.Instance, len(ids))
	cancel := p.sandbox.EC2().Subscribe(func(c ec2.Change) { p.notice(st, c, noticed) })
	defer cancel()
	if err := p.bringAbout(ctx, st, ids); err != nil {
		return err
	}
	if st.Via == ViaQueue {
		now := time.Now()
		p.started(st, now, now.Add(st.Notice), "a drill: only the message is in the queue")
		return nil
	}
	limit := time.After(st.Notice + 30*time.Second)
	select {
	case <-noticed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit:
		return errors.New("the emulated EC2 gave no notice")
	}
}

// notice looks out for the change that starts the clock.
func (p *player) notice(st InterruptStatement, c ec2.Change, noticed chan<- ec2.Instance) {
	now := time.Now()
	switch {
	case st.Kind == SpotInterruption && c.What == ec2.Warned:
		p.started(st, now, c.Instance.Notice.Deadline, "AWS takes the instance back (EC2 Spot Instance Interruption Warning)")
	case st.Kind == Rebalance && c.What == ec2.Recommended:
		p.started(st, now, time.Time{}, "AWS recommends rebalancing (EC2 Instance Rebalance Recommendation)")
	default:
		return
	}
	select {
	case noticed <- c.Instance:
	default:
	}
}

// started starts the clock, once.
func (p *player) started(st InterruptStatement, t, deadline time.Time, text string) {
	p.do(func(w *World) []Moment {
		if w.Started() {
			return nil
		}
		w.Start(t, deadline)
		if !deadline.IsZero() {
			timer := time.AfterFunc(time.Until(deadline), func() { p.tell(MomentDeadline, "the deadline") })
			p.stops = append(p.stops, func() { timer.Stop() })
		}
		kind := MomentNotice
		if st.Kind == Rebalance {
			kind = MomentRebalance
		}
		if !deadline.IsZero() {
			text += fmt.Sprintf(": %s left", seconds(deadline.Sub(t)))
		}
		return []Moment{w.moment(t, kind, strings.Join(st.Nodes, ","), "", text)}
	})
}

// bringAbout makes AWS do it.
func (p *player) bringAbout(ctx context.Context, st InterruptStatement, ids []string) error {
	var targets []drill.Target
	for _, name := range st.Nodes {
		in := p.nodes[name]
		targets = append(targets, drill.Target{InstanceID: in.ID, Node: in.PrivateDNSName, Zone: in.Zone})
	}
	w := p.sandbox.Wiring()
	place := drill.Place{Account: w.Account, Region: w.Region, Partition: "aws"}
	switch {
	case st.Via == ViaFIS:
		return p.experiment(ctx, st, place, targets)
	case st.Via == ViaQueue:
		return p.send(ctx, st, place, targets)
	case st.Kind == Rebalance:
		return p.sandbox.EC2().Recommend(ids)
	default:
		return p.sandbox.EC2().Interrupt(ids, ec2.InterruptOptions{Notice: st.Notice})
	}
}

func (p *player) experiment(ctx context.Context, st InterruptStatement, place drill.Place, targets []drill.Target) error {
	p.tell(MomentStep, "an FIS experiment is started: aws:ec2:send-spot-instance-interruptions")
	e := drill.Experiment{
		Place: place, RoleARN: "arn:aws:iam::" + place.Account + ":role/lifeboat-drill",
		Delay: st.Notice - drill.Lead, Poll: 200 * time.Millisecond,
		Progress: func(string) {}, Warn: func(text string) { p.tell(MomentStep, text) },
	}
	_, err := e.Run(ctx, fis.NewFromConfig(p.sandbox.AWSConfig()), targets)
	return err
}

func (p *player) send(ctx context.Context, st InterruptStatement, place drill.Place, targets []drill.Target) error {
	kind := notice.KindSpotInterruption
	if st.Kind == Rebalance {
		kind = notice.KindRebalanceRecommendation
	}
	client := sqs.NewFromConfig(p.sandbox.AWSConfig())
	for _, t := range targets {
		body, err := drill.Notice{Place: place, Kind: kind, Target: t, Time: time.Now(), ID: drill.NewID()}.Body()
		if err != nil {
			return err
		}
		url := p.sandbox.State().QueueURL
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			return fmt.Errorf("sending the notice: %w", err)
		}
	}
	return nil
}
