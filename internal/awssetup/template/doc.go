// Package template reads wiring from files, without an account: CloudFormation in
// YAML or JSON, Terraform in JSON, and the output of `terraform show -json`, `aws
// events` and `aws sqs get-queue-attributes`. The result is one [snapshot.Snapshot].
//
// It resolves references as far as needed to link rules to queues and policies.
// Values that a template does not define (parameters without a default, imports) are
// marked. If the check depends on them, they are reported as not understood; they are
// never guessed. Conditions count as true. The package is pure.
package template
