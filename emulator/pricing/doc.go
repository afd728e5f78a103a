// Package pricing emulates the AWS Price List Query API as far as it tells what an EC2
// instance costs on demand.
package pricing
