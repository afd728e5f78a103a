package pricing

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Service is the Price List Query API on the wire. It has endpoints in three regions
// only, whose prices are those of every region: so it takes credentials of any.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "pricing",
		Protocol:     wire.JSON11,
		TargetPrefix: "AWSPriceListService",
		AnyRegion:    true,
		Actions:      map[string]wire.Action{"GetProducts": wire.Do(a.getProducts)},
	}
}
