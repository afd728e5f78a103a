provider "aws" {
  region = var.region
}

variable "region" {
  type    = string
  default = "eu-west-1"
}

locals {
  name = "prod"
  tags = { team = "nodes" }
}

module "karpenter" {
  source = "./modules/karpenter"

  cluster_name = local.name
  tags         = merge(local.tags, { cluster = local.name })
}

output "queue" {
  value = module.karpenter.queue_name
}
