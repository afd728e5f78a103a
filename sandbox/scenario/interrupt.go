package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// interrupt starts or restarts the clock.
func (p *player) interrupt(ctx context.Context, st InterruptStatement) error {
	p.do(func(w *World) []Moment { w.MarkInterrupted(st.Nodes); return nil })
	switch {
	case st.Kind == ScheduledChange:
		return p.schedule(st)
	case st.Kind == FailedStatus:
		return p.failStatus(st)
	case st.Via == ViaQueue:
		if err := p.send(ctx, st); err != nil {
			return err
		}
		now, deadline := time.Now(), time.Time{}
		if st.Notice > 0 {
			deadline = now.Add(st.Notice)
		}
		p.starter(st)(now, deadline, "a drill: only the message is in the queue")
		return nil
	}
	start, noticed := p.starter(st), make(chan ec2.Instance, len(st.Nodes))
	cancel := p.sandbox.EC2().Subscribe(func(c ec2.Change) { startOnNotice(st, c, start, noticed) })
	defer cancel()
	if err := p.reclaim(ctx, st); err != nil {
		return err
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

// startOnNotice starts the clock if the change is the expected notice.
func startOnNotice(st InterruptStatement, c ec2.Change, start starter, noticed chan<- ec2.Instance) {
	now := time.Now()
	switch {
	case st.Kind == SpotInterruption && c.What == ec2.Warned:
		start(now, c.Instance.Notice.Deadline, "AWS reclaims the instance (EC2 Spot Instance Interruption Warning)")
	case st.Kind == Rebalance && c.What == ec2.Recommended:
		start(now, time.Time{}, "AWS recommends rebalancing (EC2 Instance Rebalance Recommendation)")
	default:
		return
	}
	select {
	case noticed <- c.Instance:
	default:
	}
}

// starter starts the clock at t, with a deadline or, if it is zero, none.
type starter func(t, deadline time.Time, text string)

// starter returns a starter that acts only once.
func (p *player) starter(st InterruptStatement) starter {
	begun := false // recordProtection by the watcher
	return func(t, deadline time.Time, text string) {
		p.do(func(w *World) []Moment {
			if begun {
				return nil
			}
			begun = true
			w.Start(t, deadline)
			kind := MomentNotice
			if st.Kind == Rebalance {
				kind = MomentRebalance
			}
			if !deadline.IsZero() {
				timer := time.AfterFunc(time.Until(deadline), func() { p.addMoment(MomentDeadline, "the deadline") })
				p.stops = append(p.stops, func() { timer.Stop() })
				text += fmt.Sprintf(": %s left", roughly(deadline.Sub(t)))
			}
			return []Moment{w.moment(t, kind, strings.Join(st.Nodes, ","), "", text)}
		})
	}
}

// roughly rounds long durations to the minute.
func roughly(d time.Duration) string {
	if d < 10*time.Minute {
		return seconds(d)
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func (p *player) ids(names []string) []string {
	var ids []string
	for _, name := range names {
		ids = append(ids, p.nodes[name].ID)
	}
	return ids
}

// schedule makes AWS schedule maintenance: EC2 shows it, and Health sends an event, in whole
// seconds.
func (p *player) schedule(st InterruptStatement) error {
	now := time.Now()
	due := now.Add(st.Notice).Truncate(time.Second)
	p.starter(st)(now, due, "AWS plans "+st.Code+" (AWS Health Event)")
	service := p.sandbox.AWS().States.Health
	arn, err := service.Schedule(health.Plan{
		InstanceIDs: p.ids(st.Nodes), Code: st.Code, NotBefore: due, NotAfter: due.Add(2 * time.Hour),
		Description: "The instance is running on hardware that has to be maintained.",
	})
	if err != nil {
		return err
	}
	events := service.Planned(arn)
	for _, name := range st.Nodes {
		p.planned[name] = append(p.planned[name], events[p.nodes[name].ID])
	}
	return nil
}

// cancel makes AWS cancel what it had scheduled.
func (p *player) cancel(st CancelStatement) error {
	p.addMoment(MomentStep, "AWS cancels its scheduled event of "+strings.Join(st.Nodes, ", "))
	for _, name := range st.Nodes {
		if len(p.planned[name]) == 0 {
			return fmt.Errorf("AWS has no scheduled event for node %s", name)
		}
		for _, event := range p.planned[name] {
			if err := p.sandbox.EC2().EndMaintenance(p.nodes[name].ID, event, false); err != nil {
				return err
			}
		}
		p.planned[name] = nil
	}
	return nil
}

// impairedFor is the time since which the status checks fail, when a script makes them fail.
const impairedFor = 10 * time.Minute

func (p *player) failStatus(st InterruptStatement) error {
	now := time.Now()
	p.starter(st)(now, time.Time{}, "the status checks of EC2 fail")
	for _, id := range p.ids(st.Nodes) {
		sick := ec2.Health{Instance: ec2.StatusImpaired, ImpairedSince: now.Add(-impairedFor)}
		if err := p.sandbox.EC2().SetHealth(id, sick); err != nil {
			return err
		}
	}
	return nil
}

// reclaim makes EC2 or FIS send the notice and, for spot, end the instance.
func (p *player) reclaim(ctx context.Context, st InterruptStatement) error {
	switch {
	case st.Via == ViaFIS:
		return p.experiment(ctx, st)
	case st.Kind == Rebalance:
		return p.sandbox.EC2().Recommend(p.ids(st.Nodes))
	default:
		return p.sandbox.EC2().Interrupt(p.ids(st.Nodes), ec2.InterruptOptions{Notice: st.Notice, Exhaust: st.Exhausts})
	}
}

func (p *player) place() drill.Place {
	w := p.sandbox.Wiring()
	return drill.Place{Account: w.Account, Region: w.Region, Partition: "aws"}
}

func (p *player) targets(st InterruptStatement) []drill.Target {
	var targets []drill.Target
	for _, name := range st.Nodes {
		in := p.nodes[name]
		targets = append(targets, drill.Target{InstanceID: in.ID, Node: in.PrivateDNSName, Zone: in.Zone})
	}
	return targets
}

func (p *player) experiment(ctx context.Context, st InterruptStatement) error {
	place := p.place()
	p.addMoment(MomentStep, "an FIS experiment is started: aws:ec2:send-spot-instance-interruptions")
	e := drill.Experiment{
		Place: place, RoleARN: "arn:aws:iam::" + place.Account + ":role/lifeboat-drill",
		Delay: st.Notice - drill.Lead, Poll: 200 * time.Millisecond,
		Progress: func(string) {}, Warn: func(text string) { p.addMoment(MomentStep, text) },
	}
	_, err := e.Run(ctx, fis.NewFromConfig(p.sandbox.AWSConfig()), p.targets(st))
	return err
}

func (p *player) send(ctx context.Context, st InterruptStatement) error {
	kind := notice.KindSpotInterruption
	if st.Kind == Rebalance {
		kind = notice.KindRebalanceRecommendation
	}
	client := sqs.NewFromConfig(p.sandbox.AWSConfig())
	for _, t := range p.targets(st) {
		body, err := drill.Notice{Place: p.place(), Kind: kind, Target: t, Time: time.Now(), ID: drill.NewID()}.Body()
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
