terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "commit" {
  description = "Commit to train. A new one reruns the training."
  type        = string
  default     = "none"
}

variable "python" {
  description = "Python interpreter with scikit-learn (pip install scikit-learn)."
  type        = string
  default     = "python3"
}

variable "output_dir" {
  description = "Absolute path of an existing folder for the checkpoint. If null, none is kept."
  type        = string
  default     = null
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

module "digits" {
  source     = "./digits"
  cluster    = trainyard_cluster.lab
  python     = var.python
  output_dir = var.output_dir
  triggers   = { commit = var.commit }
}

output "accuracy" {
  description = "Accuracy of the model on held-out digits, from 0 to 1."
  value       = module.digits.accuracy
}

output "resumed_at" {
  description = "Number of epochs in the checkpoint that training resumed from."
  value       = module.digits.resumed_at
}
