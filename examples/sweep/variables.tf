variable "trainer" {
  description = "Path of the training program. Defaults to `digits-trainer` in this folder, built with `CGO_ENABLED=0 go build -o digits-trainer ../quickstart/trainer`."
  type        = string
  default     = null
}

variable "learning_rates" {
  description = "Learning rates to try."
  type        = list(number)
  default     = [0.03, 0.1, 0.3, 1, 3]
}

variable "seeds" {
  description = "Number of runs for each learning rate, each with a different seed."
  type        = number
  default     = 10

  validation {
    condition     = var.seeds >= 1 && var.seeds == floor(var.seeds)
    error_message = "seeds is ${var.seeds}: it must be a whole number, 1 or more."
  }
}

variable "runs" {
  description = "Additional runs, or other values for existing ones, by key: { \"lr-0-3-seed-7\" = { LR = 0.25, SEED = 7 } }."
  type        = map(object({ LR = number, SEED = number }))
  default     = {}
}

variable "max_parallel" {
  description = "Maximum number of runs in parallel. Defaults to the number of this machine's CPUs."
  type        = number
  default     = null
}

variable "steps" {
  description = "Mini-batches that each run trains on."
  type        = number
  default     = 1500
}

variable "again" {
  description = "A new value reruns the failed runs."
  type        = string
  default     = "1"
}
