variable "python" {
  description = "Python that has PyTorch and scikit-learn (apt-get install python3-torch python3-sklearn)."
  type        = string
  default     = "python3"
}

variable "folder" {
  description = "Folder of the checkpoints, which all ranks read."
  type        = string
  default     = "checkpoints"
}

variable "port" {
  description = "First port of the workers. At that of worker 0 they meet."
  type        = number
  default     = 29400
}

variable "workers" {
  description = "Number of workers, each of which has a rank. Another number restarts none of the others' agents."
  type        = number
  default     = 2

  validation {
    condition     = contains([1, 2, 3], var.workers)
    error_message = "workers must be 1, 2 or 3, which torchrun is told in main.tf; it is ${var.workers}."
  }
}

variable "epochs" {
  description = "Number of times that all images are learnt from, those before the checkpoint included."
  type        = number
  default     = 20
}
