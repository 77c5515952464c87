terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "commit" {
  description = "The commit that is trained. Another one trains anew."
  type        = string
  default     = "none"
}

variable "python" {
  description = "Python with scikit-learn (pip install scikit-learn)."
  type        = string
  default     = "python3"
}

variable "output_dir" {
  description = "Existing folder for the checkpoint, an absolute path. Null keeps none."
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
  description = "Fraction of the held-out digits that the model reads rightly."
  value       = module.digits.accuracy
}

output "resumed_at" {
  description = "Number of epochs that were in the checkpoint with which training began."
  value       = module.digits.resumed_at
}
