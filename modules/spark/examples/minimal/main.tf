# A master and two workers as processes on this machine, and a model that they train. The apply returns once the model
# is trained.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "commit" {
  description = "Commit of the program. A new one submits the application again."
  type        = string
  default     = "1"
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "process"
}

module "spark" {
  source = "../.."

  cluster = trainyard_cluster.lab
}

module "arrears" {
  source = "../../submit"

  spark    = module.spark
  name     = "arrears"
  triggers = { commit = var.commit }
}

data "trainyard_logs" "driver" {
  cluster = trainyard_cluster.lab
  member  = module.arrears.driver

  depends_on = [module.arrears] # the log is complete then
}

output "result" {
  description = "The driver's last report: accuracy, area under the curve, seconds."
  value       = try([for line in reverse(data.trainyard_logs.driver.lines) : jsondecode(line) if can(jsondecode(line).accuracy)][0], null)
}
