data "aws_partition" "here" {
  count = var.create ? 1 : 0
}

locals {
  enabled    = var.create
  partition  = try(data.aws_partition.here[0].partition, "aws")
  queue_name = coalesce(var.queue_name, "Karpenter-${var.cluster_name}")

  events = {
    health = {
      name = "Health"
      pattern = {
        source      = ["aws.health"]
        detail-type = ["AWS Health Event"]
      }
    }
    spot = {
      name = "Spot"
      pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Spot Instance Interruption Warning"]
      }
    }
    rebalance = {
      name = "Rebalance"
      pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Instance Rebalance Recommendation"]
      }
    }
    state = {
      name = "State"
      pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Instance State-change Notification"]
      }
    }
  }
}

resource "aws_sqs_queue" "this" {
  count = local.enabled ? 1 : 0

  name                      = local.queue_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = var.managed_encryption ? var.managed_encryption : null
  tags                      = var.tags
}

data "aws_iam_policy_document" "queue" {
  count = local.enabled ? 1 : 0

  statement {
    sid       = "Send"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.this[0].arn]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com", "sqs.amazonaws.com"]
    }
  }

  statement {
    sid       = "OnlyTLS"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.this[0].arn]

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }

    principals {
      type        = "*"
      identifiers = ["*"]
    }
  }

  dynamic "statement" {
    for_each = var.queue_policy_statements != null ? var.queue_policy_statements : {}

    content {
      sid       = try(coalesce(statement.value.sid, statement.key))
      actions   = statement.value.actions
      effect    = statement.value.effect
      resources = [aws_sqs_queue.this[0].arn]

      dynamic "principals" {
        for_each = statement.value.principals != null ? statement.value.principals : []

        content {
          type        = principals.value.type
          identifiers = principals.value.identifiers
        }
      }
    }
  }
}

resource "aws_sqs_queue_policy" "this" {
  count = local.enabled ? 1 : 0

  queue_url = aws_sqs_queue.this[0].url
  policy    = data.aws_iam_policy_document.queue[0].json
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = { for k, v in local.events : k => v if local.enabled }

  name_prefix   = "${var.rule_name_prefix}${each.value.name}-"
  event_pattern = jsonencode(each.value.pattern)
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = { for k, v in local.events : k => v if local.enabled }

  rule = aws_cloudwatch_event_rule.this[each.key].name
  arn  = aws_sqs_queue.this[0].arn
}

output "queue_name" {
  value = try(aws_sqs_queue.this[0].name, null)
}
