# Two workers train the module's own model on this machine, as processes. The apply returns when they have trained.

terraform {
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "python" {
  description = "Python with TensorFlow."
  type        = string
  default     = "python3"
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "process"
}

module "mnist" {
  source = "../.."

  cluster  = trainyard_cluster.lab
  name     = "mnist"
  python   = var.python
  wait_for = "completed"
}

data "trainyard_logs" "chief" {
  cluster = trainyard_cluster.lab
  member  = module.mnist.chief

  depends_on = [module.mnist] # its log is complete by then
}

output "result" {
  description = "What worker 0 reported at the end: loss, accuracy, a checksum of the weights, seconds."
  value       = try([for line in reverse(data.trainyard_logs.chief.lines) : jsondecode(line) if can(jsondecode(line).checksum)][0], null)
}
