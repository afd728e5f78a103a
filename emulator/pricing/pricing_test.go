package pricing_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// reply is an answer, decoded as Karpenter does it.
type reply struct {
	PriceList []string
	NextToken string
	Type      string `json:"__type"`
}

func products(t *testing.T, url, region, body string) (int, reply) {
	t.Helper()
	status, text := emulatortest.Call{Service: "pricing", Region: region, Target: "AWSPriceListService.GetProducts", Body: body}.Do(t, url)
	var out reply
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return status, out
}

func query(fields ...string) string {
	var filters []string
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		kind := "TERM_MATCH"
		if of, after, ok := strings.Cut(name, ":"); ok {
			kind, name = of, after
		}
		filters = append(filters, fmt.Sprintf(`{"Type":%q,"Field":%q,"Value":%q}`, kind, name, value))
	}
	return `{"ServiceCode":"AmazonEC2","Filters":[` + strings.Join(filters, ",") + `],"MaxResults":100`
}

// prices reads a list of prices as Karpenter does it: by type.
func prices(t *testing.T, list []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, text := range list {
		var item struct {
			Product struct{ Attributes struct{ InstanceType string } }
			Terms   struct {
				OnDemand map[string]struct {
					PriceDimensions map[string]struct{ PricePerUnit map[string]string }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &item); err != nil {
			t.Fatal(err)
		}
		for _, term := range item.Terms.OnDemand {
			for _, d := range term.PriceDimensions {
				out[item.Product.Attributes.InstanceType] = d.PricePerUnit["USD"]
			}
		}
	}
	return out
}

// The two queries are Karpenter's (karpenter-provider-aws v1.14, pkg/providers/pricing).
func TestKarpenterQueries(t *testing.T) {
	t.Parallel()
	_, url := emulatortest.Serve(t, emulator.Options{Region: "eu-west-1"})
	common := []string{"regionCode=eu-west-1", "serviceCode=AmazonEC2", "preInstalledSw=NA", "operatingSystem=Linux", "capacitystatus=Used", "marketoption=OnDemand"}

	shared := query(append(slices.Clone(common), "tenancy=Shared", "productFamily=Compute Instance")...)
	got := map[string]string{}
	for token := ""; ; {
		status, out := products(t, url, "eu-central-1", shared+token+"}")
		if status != 200 {
			t.Fatalf("status %d: %+v", status, out)
		}
		for name, price := range prices(t, out.PriceList) {
			got[name] = price
		}
		if out.NextToken == "" {
			break
		}
		token = fmt.Sprintf(`,"NextToken":%q`, out.NextToken)
	}
	want := map[string]string{}
	for _, typ := range ec2.Types() {
		if price, ok := ec2.OnDemandPrice(typ.Name); ok && !strings.Contains(typ.Name, "metal") {
			want[typ.Name] = fmt.Sprintf("%.10f", price)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("shared (-want +got):\n%s", diff)
	}

	metal := query(append(slices.Clone(common), "tenancy=Dedicated", "productFamily=Compute Instance (bare metal)")...)
	_, out := products(t, url, "us-east-1", metal+"}")
	if got := prices(t, out.PriceList); got["m5.metal"] != "4.6080000000" {
		t.Errorf("bare metal: %v", got)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	_, url := emulatortest.Serve(t, emulator.Options{})
	for name, tc := range map[string]struct {
		filters []string
		want    string
	}{
		"one type":         {[]string{"instanceType=m5.large"}, "m5.large"},
		"in any case":      {[]string{"INSTANCETYPE=M5.LARGE"}, "m5.large"},
		"of a few":         {[]string{"ANY_OF:instanceType=m5.large, c5.large"}, "c5.large m5.large"},
		"without some":     {[]string{"ANY_OF:instanceType=m5.large,c5.large", "NONE_OF:instanceType=c5.large"}, "m5.large"},
		"by a part":        {[]string{"CONTAINS:instanceType=m5.large"}, "m5.large"},
		"another region":   {[]string{"regionCode=eu-west-1"}, ""},
		"an unknown field": {[]string{"colour=red"}, ""},
	} {
		_, out := products(t, url, "us-east-1", query(tc.filters...)+"}")
		var got []string
		for typ := range prices(t, out.PriceList) {
			got = append(got, typ)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	for body, want := range map[string]string{
		`{}`: "InvalidParameterException",
		`{"ServiceCode":"AmazonEC2","MaxResults":101}`:                                    "InvalidParameterException",
		`{"ServiceCode":"AmazonEC2","FormatVersion":"aws_v2"}`:                            "InvalidParameterException",
		`{"ServiceCode":"AmazonEC2","Filters":[{"Type":"LIKE","Field":"x","Value":"y"}]}`: "InvalidParameterException",
		`{"ServiceCode":"AmazonEC2","NextToken":"x"}`:                                     "InvalidNextTokenException",
	} {
		if status, out := products(t, url, "us-east-1", body); status != 400 || out.Type != want {
			t.Errorf("%s: status %d, %+v", body, status, out)
		}
	}
	if status, out := products(t, url, "us-east-1", `{"ServiceCode":"AmazonS3"}`); status != 200 || out.PriceList == nil || len(out.PriceList) > 0 {
		t.Errorf("another service: status %d, %+v", status, out)
	}
	server.Gate.Throttle("pricing", "GetProducts", 1)
	if status, out := products(t, url, "us-east-1", `{"ServiceCode":"AmazonEC2"}`); status != 400 || out.Type != "ThrottlingException" {
		t.Errorf("throttled: status %d, %+v", status, out)
	}
}
