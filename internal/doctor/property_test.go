package doctor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// propertySeed is the first seed of the random wirings. Each case has its own.
const propertySeed = 20_261_124

// maxRounds is how often a user follows every fix that is printed.
const maxRounds = 3

// Following all fixes of a broken wiring leads to one that is well in three rounds, and
// no round reduces what the queue receives. LIFEBOAT_DOCTOR_CASES sets the number of wirings.
func TestFixesOfRandomWirings(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 100
	}
	if n, err := strconv.Atoi(os.Getenv("LIFEBOAT_DOCTOR_CASES")); err == nil {
		cases = n
	}
	var group sync.WaitGroup
	failures := make(chan string, cases)
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			analyzers := map[string]*analyzer{} // one for each region: many wirings have the same patterns
			for i := worker; i < cases; i += workers {
				if problem := followFixes(uint64(propertySeed+i), analyzers); problem != "" {
					failures <- fmt.Sprintf("seed %d: %s", propertySeed+i, problem)
				}
			}
		})
	}
	group.Wait()
	close(failures)
	n := 0
	for f := range failures {
		if n++; n <= 5 {
			t.Error(f)
		}
	}
	t.Logf("%d random wirings from seed %d, %d failed", cases, propertySeed, n)
}

// followFixes makes a random wiring and follows its fixes. It returns what went wrong.
func followFixes(seed uint64, analyzers map[string]*analyzer) string {
	g := &randomWiring{Rand: rand.New(rand.NewPCG(seed, 1))}
	s, want := g.wiring()
	a := analyzers[s.Region]
	if a == nil {
		a = newAnalyzer(s)
		analyzers[s.Region] = a
	}
	history := strings.Join(g.done, "; ")
	for round := range maxRounds {
		all := a.run(s, want, Cluster{})
		if len(serious(all)) == 0 {
			return ""
		}
		before := a.deliveries(s, want)
		for _, f := range all {
			s, _ = Apply(f, s)
		}
		now := a.deliveries(s, want)
		for d := range before {
			if !now[d] {
				return fmt.Sprintf("%s: round %d: the fixes stop %s", history, round, d.example)
			}
		}
	}
	if left := serious(a.run(s, want, Cluster{})); len(left) > 0 {
		return fmt.Sprintf("%s: after %d rounds remains %s %s: %s; fix: %s", history, maxRounds, left[0].Severity, left[0].ID, left[0].Problem, left[0].Fix)
	}
	return ""
}

// serious are the findings without those that are harmless by their own words.
func serious(all []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f finding.Finding) bool { return f.ID == idKindCoveredTwice })
}

// randomWiring makes a sound wiring and breaks it.
type randomWiring struct {
	*rand.Rand
	done []string
}

func (g *randomWiring) wiring() (snapshot.Snapshot, awssetup.Wiring) {
	region := []string{"eu-west-1", "cn-north-1", "us-gov-west-1", "eusc-de-east-1"}[g.IntN(4)]
	want := awssetup.Desired("prod", "210987654321", region)
	s := snapshot.Snapshot{Account: want.Account, Region: region, Queue: want.QueueARN()}
	attributes, _ := want.QueueAttributes()
	dead, _ := want.DeadLetterAttributes()
	s.Queues = []snapshot.Queue{
		{
			ARN: want.QueueARN(), Name: want.Queue.Name, Known: true, PolicyKnown: true, Policy: attributes["Policy"], Retention: want.Queue.Retention,
			Visibility: want.Queue.Visibility, MaximumSize: 1 << 20, ManagedSSE: true, DeadLetterARN: want.DeadLetterARN(), MaxReceives: want.Queue.MaxReceives,
		},
		{
			ARN: want.DeadLetterARN(), Name: want.DeadLetter.Name, Known: true, PolicyKnown: true, Policy: dead["Policy"],
			Retention: want.DeadLetter.Retention, ManagedSSE: true,
		},
	}
	for _, r := range want.Rules {
		s.Rules = append(s.Rules, snapshot.Rule{
			Name: r.Name, ARN: want.RuleARN(r.Name), Enabled: true, Pattern: r.Pattern, TargetsKnown: true,
			Targets: []snapshot.Target{{ID: "lifeboat-queue", ARN: want.QueueARN(), DeadLetterARN: want.DeadLetterARN()}},
		})
	}
	if g.IntN(2) == 0 { // a template, which names no cluster
		s.Offline, s.Queue = true, ""
		for i := range s.Rules {
			s.Rules[i].From = "wiring.json, Rule" + strconv.Itoa(i)
		}
		s.Queues[0].From, s.Queues[1].From = "wiring.json, Queue", "wiring.json, Dead"
		want = awssetup.Desired("", want.Account, region)
	}
	for range 1 + g.IntN(5) {
		if g.IntN(2) == 0 {
			g.breakRule(&s)
		} else {
			g.breakQueue(&s)
		}
	}
	return s, want
}

// breakRule breaks a rule or its target.
func (g *randomWiring) breakRule(s *snapshot.Snapshot) {
	i := g.IntN(len(s.Rules))
	r := &s.Rules[i]
	say := func(what string) { g.done = append(g.done, r.Name+" "+what) }
	if edit := g.IntN(12); edit < 6 {
		say(fmt.Sprintf("broken %d", edit))
		switch edit {
		case 0:
			r.Enabled = false
		case 1:
			if r.OnDefaultBus() {
				r.Bus, r.ARN = "nodes", strings.Replace(r.ARN, ":rule/", ":rule/nodes/", 1)
			}
		case 2:
			r.Targets = nil
		case 3:
			if len(s.Rules) > 1 {
				s.Rules = slices.Delete(s.Rules, i, i+1)
			}
		default:
			for j := range r.Targets {
				g.breakTarget(&r.Targets[j])
			}
		}
		return
	}
	before := r.Pattern
	r.Pattern = g.breakPattern(r.Pattern)
	say(before + " became " + r.Pattern)
}

func (g *randomWiring) breakTarget(t *snapshot.Target) {
	switch g.IntN(5) {
	case 0:
		t.InputPath = "$.detail"
	case 1:
		t.Input = "{}"
	case 2:
		t.Transformed = true
	case 3:
		t.RoleARN = "arn:aws:iam::210987654321:role/r"
	default:
		t.DeadLetterARN = ""
	}
}

// breakPattern returns a pattern with a mistake, or another sound one.
func (g *randomWiring) breakPattern(text string) string {
	edits := [][2]string{
		{"Spot Instance Interruption", "Spot Interruption"}, {"detail-type", "detailType"}, {`"source"`, `"Source"`}, {"aws.ec2", "ec2.amazonaws.com"},
		{"aws.ec2", "AWS.EC2"}, {"Notification", "notification"}, {`"stopping"`, `"STOPPING"`}, {`["EC2","EBS","EKS"]`, `["ec2"]`}, {"scheduledChange", "ScheduledChange"},
		{`,"lifeboat.dev"`, ""}, {`"aws.health","lifeboat.dev"`, `"aws.ec2"`}, {"Recommendation", "Recommendations"}, {`"detail":{`, `"details":{`},
	}
	whole := []string{
		`{"source":["aws.ec2"]}`, `{"source":["aws.ec2","aws.health"]}`, `{"source":"aws.ec2"}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance State-change Notification"],"detail":{"state":["stopping"]}}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-id":["i-0a1b2c3d4e5f60718"]}}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-action":["stop"]}}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"]}`,
		`{"source":["aws.health"]}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","AWS Health Event"]}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recommendation","EC2 Instance State-change Notification"]}`,
	}
	if g.IntN(3) == 0 {
		return whole[g.IntN(len(whole))]
	}
	e := edits[g.IntN(len(edits))]
	return strings.ReplaceAll(text, e[0], e[1])
}

// breakQueue breaks a setting or the policy of the queue or of its dead-letter queue.
func (g *randomWiring) breakQueue(s *snapshot.Snapshot) {
	q := &s.Queues[0]
	edit := g.IntN(16)
	g.done = append(g.done, fmt.Sprintf("queue broken %d", edit))
	switch edit {
	case 0:
		q.KMSKey, q.ManagedSSE = "alias/aws/sqs", false
	case 1:
		q.KMSKey, q.ManagedSSE, q.KeyPolicy = "key", false, `{"Statement":[]}`
	case 2:
		q.ManagedSSE = false
	case 3:
		q.Retention = time.Duration(g.IntN(600)+1) * time.Second
	case 4:
		q.Visibility = time.Hour
	case 5:
		q.Delay = time.Minute
	case 6:
		q.MaximumSize = 1024
	case 7:
		q.DeadLetterARN, q.MaxReceives = "", 0
	case 8:
		q.MaxReceives = 1
	case 9:
		s.Queues[len(s.Queues)-1].Retention = time.Hour
	case 10:
		s.Queues[len(s.Queues)-1].Policy = ""
	default:
		q.Policy = g.brokenPolicy(*q)
	}
}

func (g *randomWiring) brokenPolicy(q snapshot.Queue) string {
	statement := func(effect, principal, resource, condition string) string {
		return `{"Effect":"` + effect + `","Principal":` + principal + `,"Action":"sqs:SendMessage","Resource":"` + resource + `"` + condition + `}`
	}
	const events = `{"Service":"events.amazonaws.com"}`
	account := `,"Condition":{"StringEquals":{"aws:SourceAccount":"210987654321"}}`
	all := []string{
		"", statement("Allow", events, q.ARN, ""), statement("Allow", `"*"`, q.ARN, ""), statement("Allow", events, q.ARN+"-other", account),
		statement("Deny", `"*"`, "*", "") + "," + statement("Allow", events, q.ARN, account),
		statement("Allow", events, q.ARN, `,"Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"}}`),
		statement("Allow", events, q.ARN, `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:210987654321:rule/other-*"}}`),
		statement("Allow", events, q.ARN, `,"Condition":{"StringEquals":{"aws:SourceOrgID":"o-1"}}`),
		statement("Allow", `{"Service":"sns.amazonaws.com"}`, q.ARN, ""),
		statement("Deny", events, q.ARN, `,"Condition":{"StringNotEquals":{"aws:SourceAccount":"111122223333"}}`) + "," + statement("Allow", events, "*", account),
	}
	text := all[g.IntN(len(all))]
	if text == "" {
		return ""
	}
	return `{"Version":"2012-10-17","Statement":[` + text + `]}`
}
