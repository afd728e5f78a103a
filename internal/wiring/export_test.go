package wiring

// SamePolicy and SamePattern compare by meaning.
var (
	SamePolicy  = samePolicy
	SamePattern = samePattern
)
