variable "create" {
  type    = bool
  default = true
}

variable "cluster_name" {
  type = string
}

variable "queue_name" {
  type    = string
  default = null
}

variable "managed_encryption" {
  type    = bool
  default = true
}

variable "rule_name_prefix" {
  type    = string
  default = "Karpenter"
}

variable "queue_policy_statements" {
  type = map(object({
    sid     = optional(string)
    actions = optional(list(string))
    effect  = optional(string, "Allow")
    principals = optional(list(object({
      type        = string
      identifiers = list(string)
    })))
  }))
  default = null
}

variable "tags" {
  type    = map(string)
  default = {}
}
