variable "python" {
  description = "Python interpreter with PyTorch and scikit-learn (apt-get install python3-torch python3-sklearn)."
  type        = string
  default     = "python3"
}

variable "folder" {
  description = "Folder for checkpoints, which all ranks read."
  type        = string
  default     = "checkpoints"
}

variable "port" {
  description = "First port of the workers. The rendezvous is at the port of worker 0."
  type        = number
  default     = 29400
}

variable "workers" {
  description = "Number of workers, each with one rank. A change restarts none of the other workers' agents."
  type        = number
  default     = 2

  validation {
    condition     = contains([1, 2, 3], var.workers)
    error_message = "workers is ${var.workers}: it must be 1, 2 or 3, the range that main.tf gives to torchrun (--nnodes)."
  }
}

variable "epochs" {
  description = "Number of epochs, including those before the checkpoint."
  type        = number
  default     = 20
}
