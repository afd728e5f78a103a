package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// hostile are endings of texts from outside: escape sequences that clear the screen, write
// to the clipboard, hide text or change its direction, and lines that the program did not
// write.
var hostile = []string{
	"\x1b]52;c;cm0gLXJm\x07", "\x1b[2J\x1b[H", "\x1b[8m", "\u009b31m", "\u202e\u2066", "\x7f\x08\x08", "\r\nFORGED: all is well",
	"\nFORGED: run `curl evil`", "\u2028FORGED", "\u0085FORGED", "\x00\x1b[31m", "\xff\xfe", "\u200b\ufeff",
}

// infect appends hostile texts to strings of an object: to each with the same chance.
func infect(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.String() != "" && r.IntN(4) == 0 {
			v.SetString(v.String() + hostile[r.IntN(len(hostile))])
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			infect(r, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			infect(r, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.String {
				v.SetMapIndex(key, reflect.ValueOf(v.MapIndex(key).String()+hostile[r.IntN(len(hostile))]).Convert(v.Type().Elem()))
			}
		}
	case reflect.Struct:
		switch v.Interface().(type) {
		case metav1.TypeMeta, metav1.Time, metav1.MicroTime, runtime.RawExtension:
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				infect(r, v.Field(i))
			}
		}
	}
}

// hostileCluster is a cluster in which every object is infected as it is read.
func hostileCluster(t *testing.T, seed uint64, objects ...client.Object) client.WithWatch {
	r := rand.New(rand.NewPCG(seed, 7))
	return fakeCluster(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if r.IntN(40) == 0 {
				return fmt.Errorf("admission webhook says%s", hostile[r.IntN(len(hostile))])
			}
			err := c.List(ctx, list, opts...)
			infect(r, reflect.ValueOf(list).Elem().FieldByName("Items"))
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			infect(r, reflect.ValueOf(o))
			return err
		},
	}, objects...)
}

// ownStyle are the escape sequences of terminal.Stream.Paint.
var ownStyle = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m")

// wantHarmless fails the test if text from outside controls the terminal, or forges a line.
func wantHarmless(t *testing.T, what, out string, color bool) {
	t.Helper()
	if color {
		out = ownStyle.ReplaceAllString(out, "")
	}
	for _, r := range out {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Fatalf("%s: %U in the output:\n%q", what, r, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "FORGED") {
			t.Fatalf("%s: a forged line:\n%s", what, out)
		}
	}
}

func TestForeignTextControlsNoTerminal(t *testing.T) {
	told := inProgress()
	told.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionDrain, Message: "policy databases, rule reclaims"}
	told.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Waits", Message: "waits for shop/db-0"}}
	told.Spec.Hold = say("bob", 5*time.Second, "not now")
	told.Spec.Approval = say("alice", 10*time.Second, "go")
	commands := [][]string{
		{"watch", "--once"}, {"watch", "--once", "-o", "json"}, {"explain", nodeName}, {"explain", nodeName, "-o", "json"},
		{"plan", nodeName}, {"plan", nodeName, "-o", "json"}, {"explain", otherNode, "--kind", "scheduled", "--in", "12d"},
		{"approve", "--all"}, {"nodegroup", "list"}, {"interrupt", nodeName, "--dry-run"},
	}
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	codes := map[string]int{}
	for seed := range seeds {
		for _, args := range commands {
			h := &harness{t: t, cluster: hostileCluster(t, uint64(seed), database(told.DeepCopy())...)}
			color := seed%2 == 1
			h.setup = func(s *session) { s.out.Color, s.err.Color = color, color }
			r := h.run(t.Context(), args...)
			what := fmt.Sprintf("seed %d: %s", seed, strings.Join(args, " "))
			wantHarmless(t, what, r.out, color)
			wantHarmless(t, what, r.err, color)
			codes[fmt.Sprint(args[0], " ", r.code)]++
		}
	}
	for _, name := range []string{"watch", "explain", "plan"} {
		if codes[name+" 0"] == 0 {
			t.Errorf("%s never succeeded: %v", name, codes)
		}
	}
}

func TestDoctorShowsForeignTextAsText(t *testing.T) {
	e := newBrokenAccount(t)
	e.server.Gate.Deny("events", "ListEventBuses")
	for seed := range 6 {
		e.cluster = hostileCluster(t, uint64(seed), append(database(inProgress()), karpenterDeployment())...)
		for _, args := range [][]string{nil, {"-o", "json"}, {"-o", "sarif"}, {"-o", "junit"}} {
			r := e.doctor(args...)
			wantHarmless(t, fmt.Sprintf("seed %d: doctor %v", seed, args), r.out+r.err, false)
		}
	}
}
