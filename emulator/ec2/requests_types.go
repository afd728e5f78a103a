package ec2

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type typesInput struct {
	paging

	Types   []string `query:"InstanceType"`
	Filters []Filter `query:"Filter"`
}

type typesReply struct {
	Types     wire.Set[typeReply] `xml:"instanceTypeSet"`
	NextToken string              `xml:"nextToken,omitempty"`
}

func (a *api) describeInstanceTypes(_ context.Context, _ *wire.Request, in *typesInput) (*typesReply, error) {
	list := Types()
	for _, name := range in.Types {
		if _, ok := FindType(name); !ok {
			return nil, wire.Errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	if len(in.Types) > 0 {
		list = slices.DeleteFunc(list, func(t InstanceType) bool { return !slices.Contains(in.Types, t.Name) })
	}
	list, err := filtered(list, in.Filters, func(InstanceType) map[string]string { return nil }, typeFields())
	if err != nil {
		return nil, err
	}
	list, next, err := pageUpTo(list, in.paging, 5, 100)
	out := &typesReply{NextToken: next}
	for _, t := range list {
		out.Types = append(out.Types, typeToWire(t))
	}
	return out, err
}

func typeFields() map[string]field[InstanceType] {
	always := func(values ...string) field[InstanceType] {
		return func(InstanceType) []string { return values }
	}
	text := func(f func(InstanceType) string) field[InstanceType] { return one(f) }
	number := func(f func(InstanceType) int) field[InstanceType] {
		return one(func(t InstanceType) string { return strconv.Itoa(f(t)) })
	}
	return map[string]field[InstanceType]{
		"bare-metal":                                   always("false"),
		"burstable-performance-supported":              text(func(t InstanceType) string { return strconv.FormatBool(t.Burstable) }),
		"current-generation":                           always("true"),
		"ebs-info.ebs-optimized-support":               always("default"),
		"hypervisor":                                   always("nitro"),
		"instance-storage-supported":                   always("false"),
		"instance-type":                                text(func(t InstanceType) string { return t.Name }),
		"memory-info.size-in-mib":                      number(func(t InstanceType) int { return t.MemoryMiB }),
		"network-info.ena-support":                     always("required"),
		"network-info.encryption-in-transit-supported": text(func(t InstanceType) string { return strconv.FormatBool(t.EncryptsInTransit) }),
		"network-info.ipv4-addresses-per-interface":    number(func(t InstanceType) int { return t.AddressesEach }),
		"network-info.maximum-network-interfaces":      number(func(t InstanceType) int { return t.Interfaces }),
		"processor-info.supported-architecture":        text(func(t InstanceType) string { return t.Architecture }),
		"supported-root-device-type":                   always("ebs"),
		"supported-usage-class":                        always(OnDemand, Spot),
		"supported-virtualization-type":                always("hvm"),
		"vcpu-info.default-cores":                      number(func(t InstanceType) int { return t.VCPU / t.ThreadsPerCore }),
		"vcpu-info.default-threads-per-core":           number(func(t InstanceType) int { return t.ThreadsPerCore }),
		"vcpu-info.default-vcpus":                      number(func(t InstanceType) int { return t.VCPU }),
	}
}

type offeringsInput struct {
	paging

	LocationType string
	Filters      []Filter `query:"Filter"`
}

type offeringReply struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

type offeringsReply struct {
	Offerings wire.Set[offeringReply] `xml:"instanceTypeOfferingSet"`
	NextToken string                  `xml:"nextToken,omitempty"`
}

// describeInstanceTypeOfferings says that every type is offered everywhere.
func (a *api) describeInstanceTypeOfferings(_ context.Context, _ *wire.Request, in *offeringsInput) (*offeringsReply, error) {
	var places []string
	switch in.LocationType {
	case "", "region":
		in.LocationType, places = "region", []string{a.state.scope.Region}
	case "availability-zone":
		for _, n := range a.state.Subnets() {
			places = append(places, n.Zone)
		}
	case "availability-zone-id":
		for _, n := range a.state.Subnets() {
			places = append(places, n.ZoneID)
		}
	default:
		return nil, invalidValue("Invalid value '" + in.LocationType + "' for LocationType")
	}
	var list []offeringReply
	for _, t := range catalogue {
		for _, place := range places {
			list = append(list, offeringReply{t.Name, in.LocationType, place})
		}
	}
	list, err := filtered(list, in.Filters, func(offeringReply) map[string]string { return nil }, map[string]field[offeringReply]{
		"instance-type": one(func(o offeringReply) string { return o.Type }),
		"location":      one(func(o offeringReply) string { return o.Location }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	return &offeringsReply{list, next}, err
}

type pricesInput struct {
	paging

	Types              []string `query:"InstanceType"`
	Products           []string `query:"ProductDescription"`
	Zone               string   `query:"AvailabilityZone"`
	ZoneID             string   `query:"AvailabilityZoneId"`
	Filters            []Filter `query:"Filter"`
	StartTime, EndTime string
}

type priceReply struct {
	Type      string    `xml:"instanceType"`
	Product   string    `xml:"productDescription"`
	Price     string    `xml:"spotPrice"`
	Timestamp wire.Time `xml:"timestamp"`
	Zone      string    `xml:"availabilityZone"`
	ZoneID    string    `xml:"availabilityZoneId"`
}

type pricesReply struct {
	Prices    wire.Set[priceReply] `xml:"spotPriceHistorySet"`
	NextToken string               `xml:"nextToken"`
}

func (a *api) describeSpotPriceHistory(_ context.Context, _ *wire.Request, in *pricesInput) (*pricesReply, error) {
	from, err := readTime("StartTime", in.StartTime)
	if err != nil {
		return nil, err
	}
	to, err := readTime("EndTime", in.EndTime)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(a.state.SpotPriceHistory(from, to), func(p SpotPrice) bool { return !in.wants(p) })
	text := func(f func(SpotPrice) string) field[SpotPrice] { return one(f) }
	list, err = filtered(list, in.Filters, func(SpotPrice) map[string]string { return nil }, map[string]field[SpotPrice]{
		"availability-zone":    text(func(p SpotPrice) string { return p.Zone }),
		"availability-zone-id": text(func(p SpotPrice) string { return zoneID(p.Zone) }),
		"instance-type":        text(func(p SpotPrice) string { return p.Type }),
		"product-description":  text(func(SpotPrice) string { return productDescription }),
		"spot-price":           text(SpotPrice.text),
		"timestamp":            text(func(p SpotPrice) string { return p.Since.Format("2006-01-02T15:04:05.000Z") }),
	})
	if err != nil {
		return nil, err
	}
	// The API Reference names no maximum page size; Karpenter requests 2000.
	list, next, err := pageUpTo(list, in.paging, 1, 10000)
	out := &pricesReply{NextToken: next}
	for _, p := range list {
		out.Prices = append(out.Prices, priceReply{p.Type, productDescription, p.text(), wire.Time{Time: p.Since}, p.Zone, zoneID(p.Zone)})
	}
	return out, err
}

// text is the price as EC2 writes it: in USD with six places.
func (p SpotPrice) text() string { return strconv.FormatFloat(p.USD, 'f', 6, 64) }

// wants reports whether a price matches the request; the emulator has only Linux, in a VPC.
func (in *pricesInput) wants(p SpotPrice) bool {
	linux := len(in.Products) == 0 || slices.Contains(in.Products, productDescription) || slices.Contains(in.Products, productDescription+" (Amazon VPC)")
	return linux && (len(in.Types) == 0 || slices.Contains(in.Types, p.Type)) &&
		(in.Zone == "" || in.Zone == p.Zone) && (in.ZoneID == "" || in.ZoneID == zoneID(p.Zone))
}

// readTime reads a time of a request; none is the zero time.
func readTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalidValue("Invalid value '" + text + "' for " + name + ": expecting a time such as 2026-05-11T08:14:02Z")
	}
	return t, nil
}
