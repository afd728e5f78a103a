package awssetup

// SamePolicy and SamePattern report equivalence.
var (
	SamePolicy  = samePolicy
	SamePattern = samePattern
)
