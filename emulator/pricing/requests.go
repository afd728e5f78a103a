package pricing

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// State is the price list. It changes with what Products returns.
type State struct {
	scope    wire.Scope
	products func() []Product
}

// New is the price list of the scope's region for some products.
func New(scope wire.Scope, products func() []Product) *State {
	return &State{scope: scope, products: products}
}

// api turns requests into calls on the state.
type api struct{ state *State }

// maxPage is the largest page, and the usual one (AWS Price List Query API Reference,
// GetProducts).
const maxPage = 100

type filter struct {
	Type  string
	Field string
	Value string
}

// passes compares a field of a product. Names of fields and terms are compared without
// regard to case.
func (f filter) passes(fields map[string]string) bool {
	value, known := fields[strings.ToLower(f.Field)]
	terms := strings.Split(f.Value, ",")
	is := func(term string) bool { return strings.EqualFold(value, strings.TrimSpace(term)) }
	switch f.Type {
	case "CONTAINS":
		return known && strings.Contains(strings.ToLower(value), strings.ToLower(f.Value))
	case "ANY_OF":
		return known && slices.ContainsFunc(terms, is)
	case "NONE_OF":
		return known && !slices.ContainsFunc(terms, is)
	}
	return known && strings.EqualFold(value, f.Value)
}

func (f filter) check() error {
	if !slices.Contains([]string{"TERM_MATCH", "EQUALS", "CONTAINS", "ANY_OF", "NONE_OF"}, f.Type) {
		return invalid("Input Parameters are invalid: filter type %s; use TERM_MATCH, EQUALS, CONTAINS, ANY_OF or NONE_OF", f.Type)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return wire.Errorf("InvalidParameterException", format, args...)
}

type input struct {
	ServiceCode   string
	Filters       []filter
	FormatVersion string
	NextToken     string
	MaxResults    *int
}

func (in *input) check() error {
	switch {
	case in.ServiceCode == "":
		return invalid("Input Parameters are invalid: ServiceCode is required")
	case in.FormatVersion != "" && in.FormatVersion != "aws_v1":
		return invalid("Input Parameters are invalid: FormatVersion %s is not aws_v1", in.FormatVersion)
	case in.MaxResults != nil && (*in.MaxResults < 1 || *in.MaxResults > maxPage):
		return invalid("Input Parameters are invalid: MaxResults is 1 to %d, not %d", maxPage, *in.MaxResults)
	}
	for _, f := range in.Filters {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

type output struct {
	FormatVersion string
	PriceList     []string
	NextToken     string `json:",omitempty"`
}

func (a *api) getProducts(_ context.Context, _ *wire.Request, in *input) (*output, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	list, next, err := page(a.state.find(in), in)
	if err != nil {
		return nil, err
	}
	out := &output{FormatVersion: "aws_v1", PriceList: []string{}, NextToken: next}
	for _, p := range list {
		text, err := wire.JSON(p.entry(a.state.scope.Region))
		if err != nil {
			return nil, err
		}
		out.PriceList = append(out.PriceList, string(text))
	}
	return out, nil
}

// find lists the products that match all filters. Services other than EC2 have none.
func (s *State) find(in *input) []Product {
	if !strings.EqualFold(in.ServiceCode, "AmazonEC2") {
		return nil
	}
	return slices.DeleteFunc(withMetal(s.products()), func(p Product) bool {
		fields := map[string]string{"productfamily": p.family(), "sku": p.sku(s.scope.Region)}
		for name, value := range p.attributes(s.scope.Region) {
			fields[strings.ToLower(name)] = value
		}
		return slices.ContainsFunc(in.Filters, func(f filter) bool { return !f.passes(fields) })
	})
}

func page(list []Product, in *input) (items []Product, next string, err error) {
	size, start := maxPage, 0
	if in.MaxResults != nil {
		size = *in.MaxResults
	}
	if in.NextToken != "" {
		raw, decodeErr := base64.StdEncoding.DecodeString(in.NextToken)
		n, parseErr := strconv.Atoi(string(raw))
		if decodeErr != nil || parseErr != nil || n < 0 {
			return nil, "", wire.Errorf("InvalidNextTokenException", "The pagination token is invalid.")
		}
		start = min(n, len(list))
	}
	end := min(start+size, len(list))
	if end < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return list[start:end], next, nil
}
