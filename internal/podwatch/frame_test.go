package podwatch

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

func TestWhatIsNoEventIsAnError(t *testing.T) {
	whole := newServer(t).frame(watch.Added, pod("a", "n"))
	if event, got, err := read(bytes.NewReader(whole)); err != nil || event != watch.Added || got.Name != "a" {
		t.Fatalf("%s of %v, error %v", event, got, err)
	}
	for n := range len(whole) {
		if _, _, err := read(bytes.NewReader(whole[:n])); !errors.Is(err, errEnded) {
			t.Errorf("cut off after %d bytes: error %v", n, err)
		}
	}
	for name, text := range map[string][]byte{
		"longer than any":   {255, 255, 255, 255},
		"no protobuf":       {0, 0, 0, 1, 255},
		"an empty event":    {0, 0, 0, 0},
		"an object of JSON": append([]byte{0, 0, 0, 13, 10, 5}, "ADDED\x12\x04\x0a\x02{}"...),
	} {
		if _, _, err := read(bytes.NewReader(text)); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, _, err := read(bytes.NewReader(nil)); !errors.Is(err, errEnded) {
		t.Errorf("nothing: error %v, though %v", err, io.EOF)
	}
}

func TestAField(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    string
		fails   bool
	}{
		"alone":                              {message: "\x12\x02hi", want: "hi"},
		"behind others":                      {message: "\x08\x96\x01\x19abcdefgh\x25abcd\x0a\x01x\x12\x02hi", want: "hi"},
		"twice: the last stands":             {message: "\x12\x02hi\x12\x02ho", want: "ho"},
		"missing":                            {message: "\x0a\x02hi"},
		"of no message":                      {},
		"of another sort":                    {message: "\x10\x01"},
		"longer than the message":            {message: "\x12\x03hi", fails: true},
		"longer than any":                    {message: "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi", fails: true},
		"without its length":                 {message: "\x12", fails: true},
		"behind a number that is cut off":    {message: "\x08", fails: true},
		"behind eight bytes that are five":   {message: "\x09abcde", fails: true},
		"behind four bytes that are three":   {message: "\x0dabc", fails: true},
		"of a sort that Kubernetes has not":  {message: "\x13\x14", fails: true},
		"with a number that is more than 64": {message: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", fails: true},
	} {
		got, err := field([]byte(tc.message), 2)
		if string(got) != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(newServer(f).frame(watch.Modified, pod("a", "n"))[4:])
	f.Fuzz(func(t *testing.T, frame []byte) {
		if event, got, err := decode(frame); err == nil && (got == nil || event == watch.Error) {
			t.Errorf("%q of %v without an error", event, got)
		}
	})
}
