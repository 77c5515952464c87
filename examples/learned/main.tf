# A model for the scaling algorithm "learned", backtested on the load that it was trained on and compared with the
# target that it is to replace. The plan fails if the model costs more: you find out before a policy uses it.
#
#   terraform-provider-trainyard autoscale train --trace load.csv --capacity 100 --max 12 --algorithm double-dqn --seed 7 -o dqn.json

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "model" {
  description = "Model file written by autoscale train."
  type        = string
  default     = "dqn.json"
}

variable "target" {
  description = "Target load per member of the policy that the model is to replace."
  type        = number
  default     = 70
}

variable "prices" {
  description = "Prices of a member-hour, of an hour with too few members, and of a change of the count, as in training."
  type        = object({ member = number, under = number, change = number })
  default     = { member = 1, under = 100, change = 0.01 }
}

locals {
  # Brokers that take 100 messages per second each. One starts in 25 s, and a change moves data for 40 s, at the cost of
  # 15 % of the capacity.
  brokers = { capacity = 100, startup = "25s", change_time = "40s", change_loss_percent = 15 }
  trace   = { csv = file("${path.module}/load.csv") }
}

data "trainyard_policy_backtest" "learned" {
  policy = {
    min      = 1
    max      = 12
    initial  = 3
    interval = "15s"
    metrics = {
      rate = { algorithm = { learned = { model = file("${path.module}/${var.model}"), per = "total", capacity = 100 } } }
    }
    scale_in = { stabilisation_window = "0s" } # the model has learnt when to wait
  }
  trace = local.trace
  model = local.brokers
}

data "trainyard_policy_backtest" "target" {
  for_each = toset([for value in distinct([var.target, 60, 70, 75, 80, 90]) : tostring(value)])

  policy = {
    min      = 1
    max      = 12
    initial  = 3
    interval = "15s"
    metrics = {
      rate = { algorithm = { target = { value = tonumber(each.key), per = "total" } } }
    }
  }
  trace = local.trace
  model = local.brokers
}

locals {
  costs = {
    for name, test in merge({ learned = data.trainyard_policy_backtest.learned }, { for value, test in data.trainyard_policy_backtest.target : "target ${value}" => test }) :
    name => test.member_hours * var.prices.member + test.under_provisioned_seconds / 3600 * var.prices.under + test.changes * var.prices.change
  }
  replaced = local.costs["target ${var.target}"]
  complaint = format("On its own trace the model costs %.1f, and the target %.1f. Train the model for longer or with another seed, or keep the target.",
  local.costs.learned, local.replaced)
}

# A failed check is a warning, in each plan and apply.
check "learned" {
  assert {
    condition     = local.costs.learned <= local.replaced
    error_message = local.complaint
  }
}

# A failed precondition is an error. The policy that uses the model should have the same one.
output "costs" {
  description = "Cost of the day with the model, and with each target."
  value       = { for name, cost in local.costs : name => floor(cost * 10) / 10 }

  precondition {
    condition     = local.costs.learned <= local.replaced
    error_message = local.complaint
  }
}
