package pricing

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Product is an instance type with its price.
type Product struct {
	Type      string
	VCPU      int
	MemoryMiB int
	// Hourly is the price on demand with Linux, in dollars an hour.
	Hourly float64
}

// metal is always in the list. AWS's list has bare metal in every region, and Karpenter treats a
// list without it as a failure. The price is that of us-east-1 (Amazon EC2 On-Demand Pricing).
var metal = Product{"m5.metal", 96, 384 * 1024, 4.608}

// withMetal adds a bare metal type if there is none.
func withMetal(list []Product) []Product {
	if slices.ContainsFunc(list, Product.isMetal) {
		return list
	}
	return append(slices.Clone(list), metal)
}

func (p Product) isMetal() bool {
	_, size, _ := strings.Cut(p.Type, ".")
	return strings.HasPrefix(size, "metal")
}

// attributes are what a product can be found by (AWS Billing User Guide, Using the AWS
// Price List Query API). Bare metal is dedicated by nature.
func (p Product) attributes(region string) map[string]string {
	tenancy := "Shared"
	if p.isMetal() {
		tenancy = "Dedicated"
	}
	return map[string]string{
		"servicecode":     "AmazonEC2",
		"regionCode":      region,
		"instanceType":    p.Type,
		"vcpu":            strconv.Itoa(p.VCPU),
		"memory":          strconv.FormatFloat(float64(p.MemoryMiB)/1024, 'f', -1, 64) + " GiB",
		"operatingSystem": "Linux",
		"preInstalledSw":  "NA",
		"licenseModel":    "No License required",
		"capacitystatus":  "Used",
		"marketoption":    "OnDemand",
		"operation":       "RunInstances",
		"tenancy":         tenancy,
	}
}

func (p Product) family() string {
	if p.isMetal() {
		return "Compute Instance (bare metal)"
	}
	return "Compute Instance"
}

// Codes that AWS's list has everywhere: of the offer on demand, and of its price by the
// hour.
const (
	onDemandCode = "JRTCKXETXF"
	hourlyCode   = "6YS6EN2CT7"
)

// sku is a stable name of 16 letters and digits.
func (p Product) sku(region string) string {
	sum := sha256.Sum256([]byte(region + "/" + p.Type))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// The members of an entry of the price list. AWS sends each as a string of JSON.

type entry struct {
	Product     product `json:"product"`
	ServiceCode string  `json:"serviceCode"`
	Terms       struct {
		OnDemand map[string]offer `json:"OnDemand"`
	} `json:"terms"`
	Version     string `json:"version"`
	Publication string `json:"publicationDate"`
}

type product struct {
	Family     string            `json:"productFamily"`
	Attributes map[string]string `json:"attributes"`
	SKU        string            `json:"sku"`
}

type offer struct {
	Dimensions map[string]dimension `json:"priceDimensions"`
	SKU        string               `json:"sku"`
	Effective  string               `json:"effectiveDate"`
	Code       string               `json:"offerTermCode"`
	Attributes map[string]string    `json:"termAttributes"`
}

type dimension struct {
	Unit        string            `json:"unit"`
	Begin       string            `json:"beginRange"`
	End         string            `json:"endRange"`
	Description string            `json:"description"`
	AppliesTo   []string          `json:"appliesTo"`
	RateCode    string            `json:"rateCode"`
	PerUnit     map[string]string `json:"pricePerUnit"`
}

// published is the date of this list; clients ignore it.
const published = "2026-11-01T00:00:00Z"

func (p Product) entry(region string) entry {
	sku := p.sku(region)
	term := sku + "." + onDemandCode
	rate := term + "." + hourlyCode
	price := strconv.FormatFloat(p.Hourly, 'f', 10, 64)
	out := entry{
		Product:     product{p.family(), p.attributes(region), sku},
		ServiceCode: "AmazonEC2", Version: "20261101000000", Publication: published,
	}
	out.Terms.OnDemand = map[string]offer{term: {
		SKU: sku, Effective: published, Code: onDemandCode, Attributes: map[string]string{},
		Dimensions: map[string]dimension{rate: {
			Unit: "Hrs", Begin: "0", End: "Inf", AppliesTo: []string{}, RateCode: rate, PerUnit: map[string]string{"USD": price},
			Description: fmt.Sprintf("$%s per On Demand Linux %s Instance Hour", strings.TrimRight(strings.TrimRight(price, "0"), "."), p.Type),
		}},
	}}
	return out
}
