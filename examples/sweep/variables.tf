variable "trainer" {
  description = "Path of the training program. Defaults to `digits-trainer` in this folder: what `CGO_ENABLED=0 go build -o digits-trainer ../quickstart/trainer` makes."
  type        = string
  default     = null
}

variable "learning_rates" {
  description = "Learning rates to try."
  type        = list(number)
  default     = [0.03, 0.1, 0.3, 1, 3]
}

variable "seeds" {
  description = "Number of runs for each learning rate, each with a seed of its own."
  type        = number
  default     = 10

  validation {
    condition     = var.seeds >= 1 && var.seeds == floor(var.seeds)
    error_message = "seeds must be a whole number, 1 or more."
  }
}

variable "runs" {
  description = "More runs, or other values of some, by key: { \"lr-0-3-seed-7\" = { LR = 0.25, SEED = 7 } }."
  type        = map(object({ LR = number, SEED = number }))
  default     = {}
}

variable "max_parallel" {
  description = "Number of runs at a time. Defaults to the number of this machine's processors."
  type        = number
  default     = null
}

variable "steps" {
  description = "Mini-batches that each run trains on."
  type        = number
  default     = 1500
}

variable "again" {
  description = "Another value starts anew the runs that failed."
  type        = string
  default     = "1"
}
