// Package template reads wiring from files, with no account: CloudFormation in
// YAML or JSON, Terraform in JSON, what `terraform show -json` prints, and what
// `aws events` and `aws sqs get-queue-attributes` print. All of it becomes one
// [snapshot.Snapshot].
//
// It resolves references as far as linking rules to queues and policies takes.
// What a template leaves open (parameters without a default, imports) is marked,
// or reported as not understood where the judgement hangs on it; it is never
// guessed. Conditions count as true. The package is pure.
package template
