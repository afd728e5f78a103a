package footprint

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

// fromALife is from an smaps file, shortened: of a program, what a loader has
// relocated in one, a library, and memory.
const fromALife = `00400000-01861000 r-xp 00000000 fe:00 10904103                           /app/life boatd
Size:              20868 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01861000-02d20000 r--p 01461000 fe:00 10904103                           /app/life boatd
Anonymous:             0 kB
02d20000-02d30000 r--p 02920000 fe:00 10904103                           /app/life boatd
Anonymous:            16 kB
02d30000-02dbc000 rw-p 02930000 fe:00 10904103                           /app/life boatd
Anonymous:             0 kB
02dbc000-04e0b000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000010000 r-xp 00000000 fe:00 77                         /lib/libc.so.6
Anonymous:             0 kB
7f0000020000-7f0000030000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`

func TestOnlyWhatIsInTheFileIsDropped(t *testing.T) {
	want := []mapping{{0x400000, 0x1861000}, {0x1861000, 0x2d20000}}
	if diff := cmp.Diff(want, clean(strings.NewReader(fromALife), "/app/life boatd"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := clean(strings.NewReader("zz-1 r-xp 0 0 0 /app\nAnonymous: 0 kB\n-\n\n2-1 r-xp 0 0 0 /app\nAnonymous: 0 kB\n"), "/app"); got != nil {
		t.Errorf("of nonsense: %v", got)
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	waste := make([]byte, 64<<20)
	for i := range waste {
		waste[i] = 1
	}
	anonymous, file := resident(t, "RssAnon"), resident(t, "RssFile")
	if waste[len(waste)-1] != 1 { // until here it is in use
		t.Fatal("it is not")
	}
	runtime.GC() // from now on it counts as garbage
	ctx, stop := context.WithCancel(t.Context())
	stop() // it gives back once, and ends
	if err := (&Keeper{Ready: func(context.Context) bool { return true }, Calm: &calm.Calm{}}).Start(ctx); err != nil {
		t.Fatal(err)
	}
	if now := resident(t, "RssAnon"); now > anonymous-48<<10 {
		t.Errorf("%d KiB of memory were resident, and %d KiB are", anonymous, now)
	}
	if now := resident(t, "RssFile"); now >= file {
		t.Errorf("%d KiB of files were resident, and %d KiB are", file, now)
	}
	if spare() > 16<<20 {
		t.Errorf("%d bytes are left to give back", spare())
	}
}

func TestNothingIsDoneBeforeTheStartIsOver(t *testing.T) {
	if err := (&Keeper{Ready: func(context.Context) bool { return false }}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if (&Keeper{}).NeedLeaderElection() {
		t.Error("replicas that do not lead keep their memory")
	}
}

// resident reads a line of proc_pid_status(5), in KiB.
func resident(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), name+":")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// While something urgent is being done the heap may grow into its room, and not
// afterwards.
func TestTheHeapHasRoomWhileItIsNotCalm(t *testing.T) {
	t.Setenv("GOGC", "")
	Tighten()
	quiet := &calm.Calm{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- (&Keeper{Ready: func(context.Context) bool { return true }, Calm: quiet}).Start(ctx) }()
	quiet.Busy()()
	for now() <= tight { // it takes a moment
		quiet.Busy()()
		time.Sleep(time.Millisecond)
	}
	for now() != tight {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRoom(t *testing.T) {
	for live, want := range map[uint64]int{0: loose, 8 << 20: 400, 20 << 20: 100, 34 << 20: loose, 39 << 20: loose, 4 << 30: loose} {
		if got := percent(live); got != want {
			t.Errorf("%d MiB live: %d %%, want %d", live>>20, got, want)
		}
	}
}

// What was held back comes once it is calm, and takes memory of its own.
func TestMemoryIsGivenBackOftenInTheAftermath(t *testing.T) {
	for calm, want := range map[time.Duration]time.Duration{0: often, aftermath - 1: often, aftermath: interval, time.Hour: interval} {
		if got := pause(calm); got != want {
			t.Errorf("after %s of calm it waits for %s, want %s", calm, got, want)
		}
	}
}

func now() int {
	p := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(p)
	return int(p[0].Value.Uint64())
}
