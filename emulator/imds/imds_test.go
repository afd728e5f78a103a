package imds_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/imds"
)

// machine is a running instance and its metadata service.
type machine struct {
	*emulator.Server
	ec2.Instance
	url  string
	stop func()
}

// newMachine runs an instance in a separate account.
func newMachine(t *testing.T, input ec2.LaunchInput) *machine {
	t.Helper()
	server, _ := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	input.ImageID, input.Min, input.Max = "ami-0abc", 1, 1
	made, err := server.States.EC2.Launch(input)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{Server: server, Instance: made[0]}
	m.reach(t, ec2.Running)
	if m.url, m.stop, err = server.States.IMDS.Serve(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	return m
}

// reach waits until the instance is in a state.
func (m *machine) reach(t *testing.T, want ec2.InstanceState) {
	t.Helper()
	eventually(t, string(want), func() bool {
		in, ok := m.States.EC2.Instance(m.ID)
		return ok && in.State == want
	})
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// client is the SDK's, which never falls back to version 1.
func (m *machine) client() *sdk.Client {
	return sdk.New(sdk.Options{
		Endpoint: m.url, EnableFallback: aws.FalseTernary, ClientEnableState: sdk.ClientEnabled, Retryer: aws.NopRetryer{},
	})
}

// get is what the SDK reads at a path below meta-data; empty if it is not there.
func (m *machine) get(t *testing.T, path string) string {
	t.Helper()
	out, err := m.client().GetMetadata(t.Context(), &sdk.GetMetadataInput{Path: path})
	if status(err) == http.StatusNotFound {
		return ""
	}
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	defer out.Content.Close()
	b, err := io.ReadAll(out.Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// status is the HTTP status in an error of the SDK; 0: none.
func status(err error) int {
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSDKReadsInstanceIdentity(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{
		Type: "m5.xlarge", Zone: "eu-west-1b", UserData: "I2Nsb3VkLWNvbmZpZw==", Spot: &ec2.SpotOptions{},
		Tags: map[string]string{"Name": "web", "has space": "x", "kubernetes.io/cluster/a": "owned"},
	})
	got := map[string]string{}
	for _, path := range []string{
		"instance-id", "instance-type", "instance-life-cycle", "local-hostname", "placement/availability-zone",
		"placement/availability-zone-id", "placement/region", "events/maintenance/scheduled", "events/maintenance/history",
		"spot/instance-action", "spot/termination-time", "events/recommendations/rebalance",
		"autoscaling/target-lifecycle-state", "tags/instance", "nonsense", "placement/", "events",
	} {
		got[path] = m.get(t, path)
	}
	same(t, "metadata", got, map[string]string{
		"instance-id": m.ID, "instance-type": "m5.xlarge", "instance-life-cycle": "spot",
		"local-hostname":              "ip-10-0-64-10.eu-west-1.compute.internal",
		"placement/availability-zone": "eu-west-1b", "placement/availability-zone-id": "euw1-az2", "placement/region": "eu-west-1",
		"events/maintenance/scheduled": "[]", "events/maintenance/history": "[]",
		"spot/instance-action": "", "spot/termination-time": "", "events/recommendations/rebalance": "",
		"autoscaling/target-lifecycle-state": "", "tags/instance": "", "nonsense": "",
		"placement/": "availability-zone\navailability-zone-id\nregion", "events": "maintenance/",
	})

	document, err := m.client().GetInstanceIdentityDocument(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "identity", []string{document.InstanceID, document.AccountID, document.Region, document.AvailabilityZone, document.PrivateIP},
		[]string{m.ID, "210987654321", "eu-west-1", "eu-west-1b", "10.0.64.10"})
	data, err := m.client().GetUserData(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(data.Content)
	same(t, "user data", []any{string(text), err}, []any{"#cloud-config", nil})

	m.States.IMDS.Set(m.ID, imds.Settings{Tags: true})
	same(t, "tags", []string{m.get(t, "tags/instance/"), m.get(t, "tags/instance/Name")}, []string{"Name", "web"})
}

func TestSDKReadsInterruptionAndScheduledEvents(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{Spot: &ec2.SpotOptions{}})
	for _, action := range []ec2.Behaviour{ec2.Stop, ec2.Terminate} {
		notice := 110 * time.Second
		if action == ec2.Terminate {
			notice = 100 * time.Second
		}
		if err := m.States.EC2.Interrupt([]string{m.ID}, ec2.InterruptOptions{Behaviour: action, Notice: notice, Rebalance: true}); err != nil {
			t.Fatal(err)
		}
		in, _ := m.States.EC2.Instance(m.ID)
		at := in.Notice.Deadline.Format("2006-01-02T15:04:05Z")
		old := at
		if action == ec2.Stop {
			old = ""
		}
		same(t, "spot", []string{m.get(t, "spot/instance-action"), m.get(t, "spot/termination-time"), m.get(t, "events/recommendations/rebalance")},
			[]string{`{"action":"` + string(action) + `","time":"` + at + `"}`, old,
				`{"noticeTime":"` + in.RebalanceAt.Format("2006-01-02T15:04:05Z") + `"}`})
	}

	id, err := m.States.EC2.ScheduleMaintenance(m.ID, ec2.Maintenance{
		Code: "system-reboot", Description: "scheduled reboot",
		NotBefore: time.Date(2066, 5, 1, 9, 0, 43, 0, time.UTC), NotAfter: time.Date(2066, 5, 21, 11, 0, 43, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(mark, state string) string {
		return `[{"NotBefore":"1 May 2066 09:00:43 GMT","NotAfter":"21 May 2066 11:00:43 GMT","Code":"system-reboot","Description":"` + mark +
			`scheduled reboot","EventId":"` + id + `","State":"` + state + `"}]`
	}
	events := func() []string {
		return []string{m.get(t, "events/maintenance/scheduled"), m.get(t, "events/maintenance/history")}
	}
	same(t, "scheduled", events(), []string{entry("", "active"), "[]"})
	if err := m.States.EC2.EndMaintenance(m.ID, id, false); err != nil {
		t.Fatal(err)
	}
	same(t, "cancelled", events(), []string{"[]", entry("[Canceled] ", "canceled")})
}

// Metadata shows the termination to an instance before hooks are notified.
func TestSDKReadsTargetState(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{})
	groups := m.States.AutoScaling
	for _, err := range []error{
		groups.CreateGroup(autoscaling.Group{Name: "g", DeregistrationDelay: time.Hour}),
		groups.PutHook(autoscaling.Hook{Name: "drain", Group: "g", Transition: autoscaling.Leaving}),
		groups.Attach("g", m.ID, autoscaling.InService),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := m.get(t, "autoscaling/target-lifecycle-state")
	if err := groups.Send(m.ID, autoscaling.ScaleIn, ""); err != nil {
		t.Fatal(err)
	}
	same(t, "target states and actions", []any{before, m.get(t, "autoscaling/target-lifecycle-state"), len(groups.Actions(m.ID))}, []any{"InService", "Terminated", 0})
}

// do is a plain HTTP request.
func (m *machine) do(t *testing.T, method, path string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, m.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const (
	ttl    = "X-aws-ec2-metadata-token-ttl-seconds: "
	bearer = "X-aws-ec2-metadata-token: "
	id     = "/latest/meta-data/instance-id"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{})
	got := func(method, path string, header ...string) int {
		code, _ := m.do(t, method, path, header...)
		return code
	}
	same(t, "requests for a token", []int{
		got("PUT", "/latest/api/token"), got("PUT", "/latest/api/token", ttl+"0"), got("PUT", "/latest/api/token", ttl+"21601"),
		got("PUT", "/latest/api/token", ttl+"x"), got("PUT", "/latest/api/token", ttl+"21600", "X-Forwarded-For: 10.0.0.1"),
		got("PUT", "/latest/meta-data", ttl+"60"), got("POST", "/latest/api/token", ttl+"60"),
	}, []int{400, 400, 400, 400, 403, 405, 405})
	_, token := m.do(t, "PUT", "/latest/api/token", ttl+"60")
	same(t, "reads", []int{
		got("GET", id), got("GET", id, bearer+"x"), got("GET", id, bearer+token), got("GET", "/latest/meta-data/x", bearer+token), got("GET", "/", bearer+token),
	}, []int{401, 401, 200, 404, 200})

	made, err := m.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, id, nil)
	r.Header.Set("X-aws-ec2-metadata-token", token)
	m.States.IMDS.Handler(made[0].ID).ServeHTTP(w, r)
	same(t, "a token of another instance", w.Code, 401)
	m.States.IMDS.ExpireTokens(m.ID)
	same(t, "a token that was ended", got("GET", id, bearer+token), 401)
	m.States.IMDS.Set(m.ID, imds.Settings{MaxTokenAge: time.Nanosecond})
	_, token = m.do(t, "PUT", "/latest/api/token", ttl+"60")
	same(t, "a token that has run out", got("GET", id, bearer+token), 401)
}

// The SDK gets a new token once the old one is refused.
func TestSDKRenewsToken(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{})
	c := sdk.New(sdk.Options{Endpoint: m.url, EnableFallback: aws.FalseTernary, ClientEnableState: sdk.ClientEnabled})
	for range 2 {
		out, err := c.GetMetadata(t.Context(), &sdk.GetMetadataInput{Path: "instance-id"})
		if err != nil {
			t.Fatal(err)
		}
		out.Content.Close()
		m.States.IMDS.Set(m.ID, imds.Settings{MaxTokenAge: time.Hour})
	}
}

func TestSDKSeesFailures(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{})
	read := func(ctx context.Context) error {
		out, err := m.client().GetMetadata(ctx, &sdk.GetMetadataInput{Path: "instance-id"})
		if err == nil {
			out.Content.Close()
		}
		return err
	}
	// Without fall-back the SDK's error has no type, only text.
	for _, tc := range []struct {
		settings imds.Settings
		want     string
	}{
		{imds.Settings{Off: true}, "StatusCode: 403"},
		{imds.Settings{Throttled: true}, "StatusCode: 503"},
		{imds.Settings{DropTokens: true}, "timeout awaiting response headers"},
	} {
		m.States.IMDS.Set(m.ID, tc.settings)
		if err := read(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: error %v, want %q", tc.settings, err, tc.want)
		}
	}
	m.States.IMDS.Set(m.ID, imds.Settings{})
	if err := read(t.Context()); err != nil {
		t.Errorf("in order again: %v", err)
	}
}

func TestPowerOffStopsMetadata(t *testing.T) {
	t.Parallel()
	m := newMachine(t, ec2.LaunchInput{})
	refused := func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	if refused() {
		t.Error("refused while running")
	}
	if _, err := m.States.EC2.Stop([]string{m.ID}); err != nil {
		t.Fatal(err)
	}
	m.reach(t, ec2.Stopped)
	eventually(t, "connections refused", refused)
	if _, err := m.States.EC2.Start([]string{m.ID}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "answered again", func() bool { return !refused() })
	same(t, "instance id", m.get(t, "instance-id"), m.ID)
	m.stop()
	if !refused() {
		t.Error("answered after its end")
	}
	if _, _, err := m.States.IMDS.Serve(t.Context(), "i-0123456789abcdef0"); err == nil {
		t.Error("served an instance that does not exist")
	}
}
