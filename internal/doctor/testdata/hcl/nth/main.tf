# Wiring for Node Termination Handler's queue mode, as its README describes it.
locals {
  queue = "nodes-nth"
  rules = {
    "${local.queue}-asg"       = { source = ["aws.autoscaling"], detail-type = ["EC2 Instance-terminate Lifecycle Action"] }
    "${local.queue}-spot"      = { source = ["aws.ec2"], detail-type = ["EC2 Spot Instance Interruption Warning"] }
    "${local.queue}-rebalance" = { source = ["aws.ec2"], detail-type = ["EC2 Instance Rebalance Recommendation"] }
    "${local.queue}-state"     = { source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"] }
    "${local.queue}-scheduled" = {
      source      = ["aws.health"]
      detail-type = ["AWS Health Event"]
      detail      = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
    }
  }
}

resource "aws_sqs_queue" "nth" {
  name                      = local.queue
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "nth" {
  queue_url = aws_sqs_queue.nth.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = ["events.amazonaws.com", "sqs.amazonaws.com"] }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.nth.arn
    }]
  })
}

resource "aws_cloudwatch_event_rule" "nth" {
  for_each      = local.rules
  name          = each.key
  event_pattern = jsonencode(each.value)
}

resource "aws_cloudwatch_event_target" "nth" {
  for_each = aws_cloudwatch_event_rule.nth
  rule     = each.value.name
  arn      = aws_sqs_queue.nth.arn
}

resource "aws_autoscaling_group" "nodes" {
  name     = "nodes"
  min_size = 0
  max_size = 10
}

resource "aws_autoscaling_lifecycle_hook" "nth" {
  name                   = "nth"
  autoscaling_group_name = aws_autoscaling_group.nodes.name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  heartbeat_timeout      = 300
  default_result         = "CONTINUE"
}
