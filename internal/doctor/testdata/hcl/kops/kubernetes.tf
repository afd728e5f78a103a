locals {
  cluster_name = "k8s.example.com"
  region       = "us-test-1"
}

provider "aws" {
  region = "us-test-1"
}

resource "aws_sqs_queue" "k8s-example-com-nth" {
  message_retention_seconds = 300
  name                      = "k8s-example-com-nth"
  policy                    = file("${path.module}/data/aws_sqs_queue_k8s-example-com-nth_policy")
  tags = {
    "KubernetesCluster"                     = "k8s.example.com"
    "Name"                                  = "k8s-example-com-nth"
    "kubernetes.io/cluster/k8s.example.com" = "owned"
  }
}

resource "aws_cloudwatch_event_rule" "k8s-example-com-ASGLifecycle" {
  event_pattern = file("${path.module}/data/aws_cloudwatch_event_rule_k8s.example.com-ASGLifecycle_event_pattern")
  name          = "k8s.example.com-ASGLifecycle"
}

resource "aws_cloudwatch_event_target" "k8s-example-com-ASGLifecycle-Target" {
  arn  = aws_sqs_queue.k8s-example-com-nth.arn
  rule = aws_cloudwatch_event_rule.k8s-example-com-ASGLifecycle.id
}

resource "aws_cloudwatch_event_rule" "k8s-example-com-SpotInterruption" {
  event_pattern = file("${path.module}/data/aws_cloudwatch_event_rule_k8s.example.com-SpotInterruption_event_pattern")
  name          = "k8s.example.com-SpotInterruption"
}

resource "aws_cloudwatch_event_target" "k8s-example-com-SpotInterruption-Target" {
  arn  = aws_sqs_queue.k8s-example-com-nth.arn
  rule = aws_cloudwatch_event_rule.k8s-example-com-SpotInterruption.id
}

resource "aws_cloudwatch_event_rule" "k8s-example-com-InstanceStateChange" {
  event_pattern = file("${path.module}/data/aws_cloudwatch_event_rule_k8s.example.com-InstanceStateChange_event_pattern")
  name          = "k8s.example.com-InstanceStateChange"
}

resource "aws_cloudwatch_event_target" "k8s-example-com-InstanceStateChange-Target" {
  arn  = aws_sqs_queue.k8s-example-com-nth.arn
  rule = aws_cloudwatch_event_rule.k8s-example-com-InstanceStateChange.id
}

resource "aws_cloudwatch_event_rule" "k8s-example-com-InstanceScheduledChange" {
  event_pattern = file("${path.module}/data/aws_cloudwatch_event_rule_k8s.example.com-InstanceScheduledChange_event_pattern")
  name          = "k8s.example.com-InstanceScheduledChange"
}

resource "aws_cloudwatch_event_target" "k8s-example-com-InstanceScheduledChange-Target" {
  arn  = aws_sqs_queue.k8s-example-com-nth.arn
  rule = aws_cloudwatch_event_rule.k8s-example-com-InstanceScheduledChange.id
}
