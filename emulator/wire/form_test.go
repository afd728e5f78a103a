package wire_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type embedded struct {
	QueueURL string `json:"QueueUrl"`
}

type filter struct {
	Name   string
	Values []string `query:"Value"`
}

type formInput struct {
	embedded

	Count   *int
	Absent  *int
	DryRun  bool
	Ratio   float64
	Data    []byte
	Blob    wire.Blob
	IDs     []string          `query:"InstanceId"`
	Arns    []string          `query:"Arns"`
	Filters []filter          `query:"Filter"`
	Tags    map[string]string `query:"Tag,Key,Value"`
	Nested  struct{ Group *filter }
	Left    string `query:"-"`
	hidden  string
}

func TestFormDecode(t *testing.T) {
	form, err := url.ParseQuery("QueueUrl=u&Count=3&DryRun=true&Ratio=1.5&Data=AAE=&Blob=AAE=" +
		"&InstanceId.1=a&InstanceId.2=b&InstanceId.4=lost&InstanceId.10=lost&Arns.member.1=x&Arns.member.2=y" +
		"&Filter.1.Name=n&Filter.1.Value.1=v&Filter.1.Value.2=w&Filter.2.Name=m" +
		"&Tag.1.Key=k&Tag.1.Value=v&Tag.2.Key=k2&Tag.2.Value=&Nested.Group.Name=g&Left=x&hidden=x&Unknown=1")
	if err != nil {
		t.Fatal(err)
	}
	var got formInput
	if err := wire.FormDecode(form, &got); err != nil {
		t.Fatal(err)
	}
	three := 3
	want := formInput{
		embedded: embedded{QueueURL: "u"}, Count: &three, DryRun: true, Ratio: 1.5, Data: []byte{0, 1}, Blob: []byte{0, 1},
		IDs: []string{"a", "b"}, Arns: []string{"x", "y"},
		Filters: []filter{{Name: "n", Values: []string{"v", "w"}}, {Name: "m"}},
		Tags:    map[string]string{"k": "v", "k2": ""},
		Left:    "", hidden: "", // although the form names them
	}
	want.Nested.Group = &filter{Name: "g"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(formInput{}, embedded{})); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestFormDecodeRejectsInvalidForms(t *testing.T) {
	for _, form := range []string{"Count=many", "DryRun=perhaps", "Ratio=x", "Data=%21", "Count=99999999999999999999"} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(form, "=")
		if err := wire.FormDecode(values, &formInput{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error = %v, want one that names %s", form, err, name)
		}
	}
	if err := wire.FormDecode(url.Values{}, formInput{}); err == nil {
		t.Error("decoded into what is no pointer")
	}
}

func FuzzFormDecode(f *testing.F) {
	f.Add("Filter.1.Value.1=a&Filter.1.Value.member.2=b&Tag.entry.1.key=x")
	f.Add("Count.1=3&Nested=1&InstanceId.=x&Data=%%%")
	f.Fuzz(func(t *testing.T, query string) {
		form, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		var in formInput
		_ = wire.FormDecode(form, &in) // must not panic
		for _, list := range [][]string{in.IDs, in.Arns} {
			if len(list) > len(form) {
				t.Errorf("%d elements out of %d parameters", len(list), len(form))
			}
		}
	})
}
