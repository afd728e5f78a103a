// Package template reads wiring from files, without an account: CloudFormation in
// YAML or JSON, Terraform in JSON, and the output of `terraform show -json`, `aws
// events` and `aws sqs get-queue-attributes`. The result is one [snapshot.Snapshot].
//
// It resolves references as far as needed to link rules to queues and policies. A value
// that a template does not define becomes a symbol (package symbol): the parts that
// depend on it are reported as not understood, and never guessed. The package is pure.
package template
