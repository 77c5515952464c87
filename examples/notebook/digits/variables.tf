variable "cluster" {
  description = "Cluster to train on, as a whole object: `trainyard_cluster.lab`."
  type = object({
    name     = string
    engine   = optional(string)
    endpoint = optional(string)
  })
  nullable = false

  validation {
    condition     = var.cluster.engine != "swarm"
    error_message = "cluster.engine is \"swarm\": it must be \"process\" or \"systemd\", because the program comes as files, which containers on a Swarm don't get."
  }
}

variable "name" {
  description = "Name of the group."
  type        = string
  default     = "digits"
  nullable    = false
}

variable "python" {
  description = "Python interpreter with scikit-learn."
  type        = string
  default     = "python3"
  nullable    = false
}

variable "epochs" {
  description = "Number of epochs."
  type        = number
  default     = 20
  nullable    = false

  validation {
    condition     = var.epochs >= 1 && floor(var.epochs) == var.epochs
    error_message = "epochs is ${var.epochs}: it must be a whole number, 1 or more."
  }
}

variable "learning_rate" {
  description = "Learning rate."
  type        = number
  default     = 0.01
  nullable    = false

  validation {
    condition     = var.learning_rate > 0 && var.learning_rate <= 1
    error_message = "learning_rate is ${var.learning_rate}: it must be above 0 and at most 1."
  }
}

variable "hidden_units" {
  description = "Number of units in the hidden layer."
  type        = number
  default     = 32
  nullable    = false

  validation {
    condition     = var.hidden_units >= 1 && floor(var.hidden_units) == var.hidden_units
    error_message = "hidden_units is ${var.hidden_units}: it must be a whole number, 1 or more."
  }
}

variable "output_dir" {
  description = "Absolute path of an existing folder for the checkpoint. If null, none is kept."
  type        = string
  default     = null

  validation {
    condition     = var.output_dir == null || startswith(coalesce(var.output_dir, "-"), "/")
    error_message = "output_dir is \"${coalesce(var.output_dir, "-")}\": it must be an absolute path."
  }
}

variable "gpus" {
  description = "GPUs of the worker, as in `trainyard_group`: `{ pool = \"all\" }`. If null, it has none."
  type        = object({ pool = string, count = optional(number), memory_mib = optional(number) })
  default     = null
}

variable "resources" {
  description = "CPUs and memory of the worker, as in `trainyard_group`."
  type        = object({ cpus = optional(number), memory_mib = optional(number) })
  default     = null
}

variable "triggers" {
  description = "Arbitrary strings, such as the commit. A change of any of them reruns the training."
  type        = map(string)
  default     = null
}
